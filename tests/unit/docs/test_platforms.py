"""The table of platforms and the program that makes it."""

from tools.matrix.cells import NOT_RUN, results


def test_macos_is_not_said_to_run() -> None:
    assert {result for cell, result in results().items() if cell.system == "macOS"} == {NOT_RUN}
