"""The systems that quotahost is built for, and what became of it on each: the table of docs/reference/platforms.md.

A cell is one combination of system, Python, Java, Kafka and architecture. The document keeps the results; the program
replaces those of the cells that it has run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = ROOT / "docs/reference/platforms.md"
BEGIN, END = "<!-- platforms -->", "<!-- /platforms -->"
NOT_RUN: Final = "built, not run"
HEADS: Final = ("system", "architecture", "Python", "Java", "Kafka", "result")


@dataclass(frozen=True)
class Cell:
    """One row of the table.

    Attributes:
        system: a suite of Debian; ``host`` for the machine that runs the program; ``musl``, ``macOS``.
        architecture: as Debian names it: amd64 or arm64.
        python: its version without the last number; "-" where none is started.
        java: the version of the JRE; "-" where none is started.
        kafka: its version; "-" where no broker is started.
    """

    system: str
    architecture: str
    python: str
    java: str
    kafka: str

    @property
    def name(self) -> str:
        """How the command line names it."""
        return "/".join(self._fields())

    def _fields(self) -> tuple[str, ...]:
        return self.system, self.architecture, self.python, self.java, self.kafka


NEWEST: Final = "4.3.1"
CELLS: Final = (
    *(Cell("host", "amd64", "3.11", "17", kafka) for kafka in ("4.0.1", "4.1.1", "4.2.0", NEWEST)),
    Cell("host", "amd64", "3.12", "17", NEWEST),
    Cell("bookworm", "amd64", "3.11", "17", NEWEST),
    Cell("trixie", "amd64", "3.13", "21", NEWEST),
    Cell("trixie", "amd64", "3.13", "25", NEWEST),
    Cell("sid", "amd64", "3.14", "25", "4.0.1"),
    Cell("sid", "amd64", "3.14", "25", NEWEST),
    Cell("trixie", "arm64", "3.13", "21", "-"),
    Cell("trixie", "arm64", "3.13", "21", NEWEST),
    Cell("musl", "amd64", "-", "-", "-"),
    Cell("musl", "arm64", "-", "-", "-"),
    Cell("macOS", "amd64", "-", "-", "-"),
    Cell("macOS", "arm64", "-", "-", "-"),
)


def table(results: dict[Cell, str]) -> str:
    """The Markdown table of all cells; a cell without a result was built and not run."""
    lines = [HEADS, ("---",) * len(HEADS)]
    lines += [(*cell._fields(), results.get(cell, NOT_RUN)) for cell in CELLS]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def results(text: str) -> dict[Cell, str]:
    """The results that stand in the document's table.

    Raises:
        ValueError: the table's markers or a row's columns are missing, or a row is none of CELLS.
    """
    rows = [line.strip("| ").split(" | ") for line in _section(text).splitlines()[2:]]
    found = {Cell(*row[:5]): row[5] for row in rows if len(row) == len(HEADS)}
    if len(found) != len(rows) or not found.keys() <= set(CELLS):
        raise ValueError(f"the table of {DOCUMENT.name} has rows that are no cells: {rows}")
    return found


def record(cell: Cell, result: str, document: Path = DOCUMENT) -> None:
    """Writes the result of one cell into the document."""
    text = document.read_text(encoding="utf-8")
    new = table(results(text) | {cell: result})
    document.write_text(text.replace(_section(text), new), encoding="utf-8")


def _section(text: str) -> str:
    _, begin, rest = text.partition(BEGIN + "\n")
    table_text, end, _ = rest.partition("\n" + END)
    if not (begin and end):
        raise ValueError(f"{DOCUMENT.name} must hold {BEGIN} and {END}")
    return table_text
