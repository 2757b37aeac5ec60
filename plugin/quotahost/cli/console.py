"""The console escapes all text that ``quotahost`` prints, and makes tables, findings, plain lines and CSV.

Names of clients, topics, brokers and volumes come from records, requests and files. So a name may contain a terminal's
command, or may hide other text. :class:`Terminal` (tables, findings, sentences) and :func:`say` (plain lines) escape
each character that a terminal obeys or hides, even if the caller forgets that. Text for one line goes through
:func:`one_line` first, because a line break in a name would forge a line.

Rich's markup is never read. Only names from other clients, and cells of a live table without room, are cut. So an
operator can copy a line into a properties file, and output into a pipe or a log isn't folded at 80 columns.
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
    """Rich's console, with an escape in place of each character that a terminal obeys or hides."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape text, and draw as Rich does: Rich calls this method for everything, and all text is a Text first."""
        if isinstance(renderable, Text):
            renderable.plain = shown(renderable.plain)
        return super().render(renderable, options)


def shown(text: str) -> str:
    """Return the text with escapes, so that it can't command a terminal; line breaks stay."""
    return escaped(text, keep="\n")


def one_line(text: str, most: int | None = None) -> str:
    """Return the text for one line: line breaks are escaped, too, and text beyond ``most`` characters is cut."""
    return escaped(text if most is None or len(text) <= most else f"{text[:most]}…")


def say(text: str, *, to_stderr: bool = False, end: str = "\n") -> None:
    print(shown(text), file=sys.stderr if to_stderr else sys.stdout, end=end)


def begin(step: str) -> None:
    say(f"{step} ...", to_stderr=True)


def console() -> Terminal:
    """Return the console for standard output; if that is no terminal, the console is wide enough for long lines."""
    screen = Terminal()
    return screen if screen.is_terminal else Terminal(width=_PIPE_WIDTH)


def lines_of(draw: Callable[[Console], object]) -> list[str]:
    """Return the lines that a function prints, for a panel of the live table; the width is that of a pipe."""
    text = StringIO()
    draw(Terminal(file=text, width=_PIPE_WIDTH))
    # A table's last column is padded, too, and a narrow terminal would fold the blanks.
    return [line.rstrip() for line in text.getvalue().splitlines()]


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], styles: Mapping[str, str] = MappingProxyType({})
) -> Table:
    """Return a plain table whose cells are folded, not cut; ``styles`` has the style by the text of the first cell."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        first, *others = (Text(one_line(cell)) for cell in row)
        first.style = styles.get(first.plain, "")
        grid.add_row(first, *others)
    return grid


def json_text(content: object) -> str:
    """Return JSON, with null for NaN and infinity, for example of a rate divided by a quota of almost 0."""
    return json.dumps(json.loads(json.dumps(content), parse_constant=lambda _: None), indent=2)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """Return a table as CSV, which can command neither a terminal nor a spreadsheet.

    Every text is in quotes, because some spreadsheets divide lines at semicolons. A text that a spreadsheet would read
    as a formula gets an apostrophe before it.
    """
    file = StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_csv_cell(one_line(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return file.getvalue()


def _csv_cell(text: str) -> str:
    # The wide forms belong to the list, because spreadsheets in East Asian languages read them as the same signs.
    return f"'{text}" if text.lstrip().startswith(tuple("=+-@＝＋－＠")) else text  # noqa: RUF001


def show_facts(screen: Console, facts: Iterable[tuple[str, str]]) -> None:
    for label, value in facts:
        screen.print(Text.assemble((f"  {label:<10}", "dim"), one_line(value)), soft_wrap=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise Unusable, which names the path, in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise Unusable(f"{path} can't be written: {error.strerror or error}") from None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` for writing; at the end the file replaces ``path`` as a whole, or not at all.

    If ``path`` is a pipe or a device, or its folder isn't writable, yield ``path`` itself. Raises as ``writing``.
    """
    with writing(path):
        target = path.resolve()  # not a usable path for a pipe such as /dev/stdout
        if path.exists() and not (path.is_file() and os.access(target.parent, os.W_OK)):
            yield path
            return
        beside = target.with_name(f".{target.name}.part")
        try:
            yield beside
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:  # an unfinished file would take the rest of a full disk
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
    """One thing that a check found, with the remedy if it needs one."""

    level: Level
    text: str
    remedy: str = ""


good: Final = partial(Finding, Level.GOOD)  # something is as it should be
note: Final = partial(Finding, Level.NOTE)  # an operator should know it, or it could not be checked
weak: Final = partial(Finding, Level.WEAK)  # a broker starts with it, but is less protected than it seems
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
            grid = table(section.columns, section.rows)
            grid.columns[0].no_wrap = screen.width >= 80  # names stay whole; only a narrow terminal would cut them
            screen.print(grid)
