"""The table of platforms and the program that makes it."""

from tools.matrix.cells import CELLS, DOCUMENT, NOT_RUN, results


def test_the_document_has_each_cell_once_and_no_other() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert list(results(text)) == list(CELLS)


def test_macos_is_not_said_to_run() -> None:
    found = results(DOCUMENT.read_text(encoding="utf-8"))
    assert {result for cell, result in found.items() if cell.system == "macOS"} == {NOT_RUN}
