"""The table of platforms and the program that makes it."""

from pathlib import Path

import pytest

from tools.matrix.cells import CELLS, DOCUMENT, NOT_RUN, record, results

SYSTEM = CELLS[0]


def test_the_document_has_each_cell_once_and_no_other() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert list(results(text)) == list(CELLS)


def test_macos_is_not_said_to_run() -> None:
    found = results(DOCUMENT.read_text(encoding="utf-8"))
    assert {result for cell, result in found.items() if cell.system == "macOS"} == {NOT_RUN}


def test_a_result_replaces_the_cells_own_and_leaves_the_others(tmp_path: Path) -> None:
    copy = tmp_path / DOCUMENT.name
    copy.write_text(DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    before = results(copy.read_text(encoding="utf-8"))
    record(SYSTEM, "ran: Python 3.99.1, Java 99", copy)
    assert results(copy.read_text(encoding="utf-8")) == before | {SYSTEM: "ran: Python 3.99.1, Java 99"}


def test_a_row_that_is_no_cell_is_refused() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").replace("| sid |", "| potato |")
    with pytest.raises(ValueError, match="potato"):
        results(text)
