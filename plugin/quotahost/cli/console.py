"""The one place where text becomes something that a terminal shows: escaped, as tables, findings, plain lines, CSV.

Names of clients, topics, brokers and volumes come from records, requests and files, so whoever chose them may have
chosen a terminal's command, or a text that hides others. Tables, findings and sentences through :class:`Terminal`, and
plain lines through :func:`say`, have an escape for each character that a terminal obeys or hides, whatever the caller
forgot. What stands on one line goes through :func:`one_line` before, since a line break in it would forge a line.

Rich's markup is never read, and nothing is cut but names of strangers and where a live table has no room: a line can be
copied into a properties file, and output into a pipe or a log isn't folded at 80 columns.
"""

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from quotahost.base.errors import Unusable
from quotahost.base.text import escaped

_PIPE_WIDTH = 200  # a pipe or a log has no width of its own; rich would fold at 80


# ---- text on its way to a terminal -----------------------------------------------------------------------------


class Terminal(Console):
    """Rich's console, which shows an escape in the place of each character that a terminal obeys or hides."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See rich, which draws everything by this method; all text of a drawing is a Text before."""
        if isinstance(renderable, Text):
            renderable.plain = shown(renderable.plain)
        return super().render(renderable, options)


def shown(text: str) -> str:
    """The text as a terminal may have it, which can't command it; line breaks stay."""
    return escaped(text, keep="\n")


def one_line(text: str, most: int | None = None) -> str:
    """The text as it may stand on one line: line breaks are escaped, too, and it is cut at so many characters."""
    return escaped(text if most is None or len(text) <= most else f"{text[:most]}…")


def say(text: str, *, to_stderr: bool = False, end: str = "\n") -> None:
    print(shown(text), file=sys.stderr if to_stderr else sys.stdout, end=end)


def begin(step: str) -> None:
    say(f"{step} ...", to_stderr=True)


def console() -> Terminal:
    """Standard output; as wide as a long line needs where it isn't a terminal."""
    screen = Terminal()
    return screen if screen.is_terminal else Terminal(width=_PIPE_WIDTH)


def lines_of(draw: Callable[[Console], object]) -> list[str]:
    """What a function prints, for a panel of the live table; as wide as in a pipe."""
    screen = Terminal(file=StringIO(), width=_PIPE_WIDTH)
    with screen.capture() as text:
        draw(screen)
    # A table's last column is padded, too, and a narrow terminal would fold the blanks.
    return [line.rstrip() for line in text.get().splitlines()]


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], styles: Mapping[str, str] = MappingProxyType({})
) -> Table:
    """A plain table whose cells are folded, not cut; ``styles`` are by the text of a row's first cell."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        first, *others = (Text(one_line(cell)) for cell in row)
        first.style = styles.get(first.plain, "")
        grid.add_row(first, *others)
    return grid


def json_text(content: object) -> str:
    """JSON, with null for what it has no number for: NaN and infinity, as of a rate beside a quota of next to 0."""
    return json.dumps(json.loads(json.dumps(content), parse_constant=lambda _: None), indent=2)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """A table as CSV, which commands neither a terminal nor a spreadsheet.

    Every text stands in quotes, as some spreadsheets divide lines at semicolons. A text that a spreadsheet would take
    for a formula has an apostrophe before it.
    """
    file = StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_csv_cell(one_line(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return file.getvalue()


def _csv_cell(text: str) -> str:
    # Also the wide forms, which spreadsheets of East Asian languages take for the same signs.
    return f"'{text}" if text.lstrip().startswith(tuple("=+-@＝＋－＠")) else text  # noqa: RUF001


def show_facts(screen: Console, facts: Iterable[tuple[str, str]]) -> None:
    for label, value in facts:
        screen.print(Text.assemble((f"  {label:<10}", "dim"), one_line(value)), soft_wrap=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name what is written if the operating system doesn't let us: Unusable in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise Unusable(f"{path} can't be written: {error.strerror or error}") from None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file beside the path, whose place it takes as a whole or not at all.

    A pipe, a device, or a file that nothing may lie beside is written to itself. Unusable as of ``writing``.
    """
    with writing(path):
        target = path.resolve()  # of a pipe, such as /dev/stdout, that is no path
        if path.exists() and not (path.is_file() and os.access(target.parent, os.W_OK)):
            yield path
            return
        beside = target.with_name(f".{target.name}.part")
        try:
            yield beside
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:  # of a disk that is full it would take the rest
            beside.unlink(missing_ok=True)


# ---- findings, of doctor and plugins ---------------------------------------------------------------------------


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


def show(sections: Iterable[Section], screen: Console) -> None:
    for section in sections:
        screen.print(Text(f"\n{section.title}", style="bold"))
        for finding in section.findings:
            mark, style = finding.level.value
            screen.print(Text.assemble((f"  {mark:<6}", style), one_line(finding.text)), soft_wrap=True)
            if finding.remedy:
                screen.print(Text(f"         -> {one_line(finding.remedy)}"), soft_wrap=True)
        if section.rows:
            screen.print(table(section.columns, section.rows))
