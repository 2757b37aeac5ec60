"""How the commands print: findings under titles, tables, and errors.

Everything goes through rich as plain text: values are never read as rich's markup and never cut, so that a line can
be copied into a properties file, and output into a pipe or a log isn't folded at 80 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Final, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quotahost.errors import QuotahostError
from quotahost.text import escaped

T = TypeVar("T")

_PIPE_WIDTH = 200  # a pipe or a log has no width of its own; rich would fold at 80


def parsed(option: str, text: str, parse: Callable[[str], T]) -> T:
    """The value of an option.

    Raises:
        typer.BadParameter: instead of the parser's ValueError; it names the option and the text.
    """
    import typer  # only here: explain and top start without it (quotahost.cli.start)

    try:
        return parse(text)
    except ValueError as wrong:
        raise typer.BadParameter(f"{text!r} {wrong}", param_hint=option) from None


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


good: Final = partial(Finding, Level.GOOD)  # something is as it should be
note: Final = partial(Finding, Level.NOTE)  # an operator should know it, or it could not be checked
weak: Final = partial(Finding, Level.WEAK)  # a broker starts with it, and is protected less than it seems to be
wrong: Final = partial(Finding, Level.WRONG)  # a broker would not start with it, or not do what is configured


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


def lines_of(draw: Callable[[Console], object]) -> list[str]:
    """What a function prints, for a panel of the live table; as wide as in a pipe."""
    screen = Console(file=StringIO(), highlight=False, width=_PIPE_WIDTH)
    with screen.capture() as text:
        draw(screen)
    # A table's last column is padded, too, and a narrow terminal would fold the blanks.
    return [line.rstrip() for line in text.get().splitlines()]


def show(sections: Iterable[Section]) -> None:
    """Print the sections."""
    screen = console()
    for section in sections:
        screen.print(Text(f"\n{section.title}", style="bold"))
        for finding in section.findings:
            _show_finding(screen, finding)
        if section.rows:
            screen.print(table(section.columns, section.rows))


def shown(text: str) -> str:
    """The text as a terminal may have it: names that came from outside can't command it."""
    return escaped(text, keep="\n")


def _show_finding(screen: Console, finding: Finding) -> None:
    mark, style = finding.level.value
    screen.print(Text.assemble((f"  {mark:<6}", style), shown(finding.text)), soft_wrap=True)
    if finding.remedy:
        screen.print(Text(f"         -> {shown(finding.remedy)}"), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table whose cells are folded, not cut."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(shown(cell)) for cell in row))
    return grid
