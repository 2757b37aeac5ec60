"""How the commands print: findings under titles, tables, and errors.

Everything goes through rich as plain text: values are never read as rich's markup and never cut, so that a line can
be copied into a properties file, and output into a pipe or a log isn't folded at 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quotahost.errors import QuotahostError

_PIPE_WIDTH = 200  # a pipe or a log has no width of its own; rich would fold at 80


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file or folder that is written if the operating system doesn't let us.

    Raises:
        QuotahostError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise QuotahostError(f"{path} can't be written: {error}") from None


class Level(Enum):
    """How serious a finding is: its mark and rich's style."""

    GOOD = ("ok", "green")
    NOTE = ("--", "dim")
    WEAK = ("weak", "yellow")
    WRONG = ("WRONG", "bold red")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found, with the remedy where it needs one."""

    level: Level
    text: str
    remedy: str = ""


def good(text: str) -> Finding:
    """Something is as it should be."""
    return Finding(Level.GOOD, text)


def note(text: str, remedy: str = "") -> Finding:
    """Something that an operator should know, or that could not be checked."""
    return Finding(Level.NOTE, text, remedy)


def weak(text: str, remedy: str = "") -> Finding:
    """A broker starts with it, but is protected less than it seems to be."""
    return Finding(Level.WEAK, text, remedy)


def wrong(text: str, remedy: str = "") -> Finding:
    """A broker would not start with it, or would not do what its properties ask for."""
    return Finding(Level.WRONG, text, remedy)


@dataclass(frozen=True, slots=True)
class Section:
    """Findings under one title, and a table below them if it has rows."""

    title: str
    findings: Sequence[Finding]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether one of the findings is."""
        return any(finding.level is Level.WRONG for finding in self.findings)


def console() -> Console:
    """Standard output; as wide as a long line needs where it isn't a terminal."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def show(sections: Iterable[Section]) -> None:
    """Print the sections."""
    screen = console()
    for section in sections:
        screen.print(Text(f"\n{section.title}", style="bold"))
        for finding in section.findings:
            _show_finding(screen, finding)
        if section.rows:
            screen.print(table(section.columns, section.rows))


def _show_finding(screen: Console, finding: Finding) -> None:
    mark, style = finding.level.value
    screen.print(Text.assemble((f"  {mark:<6}", style), finding.text), soft_wrap=True)
    if finding.remedy:
        screen.print(Text(f"         -> {finding.remedy}"), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table whose cells are folded, not cut."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid
