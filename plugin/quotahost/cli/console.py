"""What a command found, and how it is printed: never cut, never taken for markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    """How a finding is to be taken: mark and style."""

    GOOD = ("ok", "green")
    NOTE = ("--", "dim")
    WEAK = ("weak", "yellow")
    WRONG = ("WRONG", "bold red")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, with the remedy where it needs one."""

    level: Level
    text: str
    remedy: str = ""


@dataclass(slots=True)
class Section:
    """Findings under one title, and a table if there is one."""

    title: str
    findings: list[Finding] = field(default_factory=list)
    columns: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, level: Level, text: str, remedy: str = "") -> None:
        """Append a finding."""
        self.findings.append(Finding(level, text, remedy))

    @property
    def is_wrong(self) -> bool:
        """Whether a broker would not start, or not as told."""
        return any(finding.level is Level.WRONG for finding in self.findings)


def console() -> Console:
    """Standard output, wide where nobody looks at a terminal."""
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
