"""The systems that quotahost is built for, and the result on each: the table of docs/reference/platforms.md.

A cell is one combination of system, Python, Java, Kafka and architecture: a row of the table. The program replaces the
results of the cells that it has run.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "docs/reference/platforms.md"
NOT_RUN: Final = "built, not run"
NEWEST: Final = "4.3.1"
_ROW: Final = re.compile(r"^\| (.+) \| (amd64|arm64) \| (\S+) \| (\S+) \| (\S+) \| (.+) \|$", re.MULTILINE)


class Cell(NamedTuple):
    """One row of the table."""

    system: str  # a suite of Debian; ``host`` for the machine that runs the program; ``musl``, ``macOS``
    architecture: str  # as Debian names it: amd64 or arm64
    python: str  # its version without the last number; "-" if none is started
    java: str  # the version of the JRE; "-" if none is started
    kafka: str  # its version; "-" if no broker is started

    @property
    def name(self) -> str:
        """The cell's name on the command line."""
        return "/".join(self)


def results() -> dict[Cell, str]:
    """The result of each cell, as the document has it."""
    return {Cell(*row[:5]): row[5] for row in _ROW.findall(DOCUMENT.read_text(encoding="utf-8"))}


def record(cell: Cell, result: str) -> None:
    """Writes the result of one cell into the document."""
    text, row = DOCUMENT.read_text(encoding="utf-8"), f"| {' | '.join(cell)} |"
    DOCUMENT.write_text(text.replace(f"{row} {results()[cell]} |", f"{row} {result} |"), encoding="utf-8")
