"""``quotahost report``: the history as one page or as pictures."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.cli.console import console, table, writing
from quotahost.cli.report.progress import Work
from quotahost.errors import QuotahostError
from quotahost.report import wording as words
from quotahost.report.values import Question, Report
from quotahost.units.parse import parse_duration

# TODO(merge) The times that ``--from`` and ``--to`` take.


_PAGES: Final = (".html", ".htm")


_EXTRA: Final = "pip install 'quotahost[spark]'"


_HEADS: Final = ("volume", "consumed", "capacity", "share", "fill rate", "time to hard limit")


def report(
    history: Annotated[str, typer.Option(metavar="DIR", help="Where the pipeline writes its history.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html|DIR", help="One page, or a folder of PNGs.")],
    cluster: Annotated[list[str] | None, typer.Option(help="Only of this cluster; may be repeated.")] = None,
    broker: Annotated[list[str] | None, typer.Option(help="Only of this broker; may be repeated.")] = None,
    volume: Annotated[list[str] | None, typer.Option(help="Only this volume; may be repeated.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="From 2026-11-21, or 2026-11-21T09:30, in UTC."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="To that time; a day is included whole.")
    ] = None,
    worst: Annotated[int, typer.Option(min=1, max=200, help="How many volumes, the worst ones.")] = 20,
    recent: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="What the fill rate is of; a quarter of the time, 7d at most."),
    ] = None,
) -> None:
    """Draw what the volumes consumed, against their limits, and when they will reach them.

    Reads what the pipeline wrote to its history, on this machine, with 1 GB of memory whatever its size.
    """
    needs_extra()
    try:
        question = Question(
            history,
            tuple(cluster or ()),
            tuple(broker or ()),
            tuple(volume or ()),
            *parse_range(since, until),
            worst,
            parse_duration(recent) if recent is not None else None,
        )
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong)) from None
    as_page = check_out(out)
    with Work() as work:
        found = work.collect(question)
        with writing(out):
            written = work.write_page(found, out) if as_page else work.write_pictures(found, out)
    summary(found)
    typer.echo(f"\n{written}")


def needs_extra() -> None:
    """Look for the libraries of the extra ``spark``, which brokers do without.

    Raises:
        QuotahostError: one isn't installed; the message is the remedy.
    """
    missing = [name for name in ("pyspark", "matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise QuotahostError(f"quotahost report needs {' and '.join(missing)}: {_EXTRA}")


def check_out(out: Path) -> bool:
    """Whether a page is wanted; a folder of pictures otherwise.

    Raises:
        typer.BadParameter: neither can be written there, which is better known before the work than after it.
    """
    if out.suffix.lower() in _PAGES and not out.is_dir():
        if not out.absolute().parent.is_dir():
            raise typer.BadParameter(f"the folder of {out} doesn't exist")
        return True
    if out.is_file() or (out.suffix and not out.is_dir()):
        raise typer.BadParameter(f"{out} is neither a FILE.html nor a folder for PNGs")
    return False


def summary(found: Report) -> None:
    """The page's table in the terminal."""
    rows = [
        [
            words.title(curve, found),
            words.show_bytes(curve.newest.last),
            words.show_bytes(curve.newest.capacity),
            words.show_share(curve.share),
            words.show_rate(curve.fill_rate),
            words.show_to_hard(curve),
        ]
        for curve in found.curves
    ]
    console().print(table(_HEADS, rows))


def parse_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """From when, and before when; None is open. A time without a zone is UTC, and a day is included whole.

    Raises:
        ValueError: one is no time, or it ends before it begins; it says what to write.
    """
    start = None if since is None else _parse(since, "--from")[0]
    if until is None:
        return start, None
    at, whole_day = _parse(until, "--to")
    end = at + timedelta(days=1) if whole_day else at
    if start is not None and end <= start:
        raise ValueError("--to is not after --from")
    return start, end


def _parse(text: str, option: str) -> tuple[datetime, bool]:
    try:
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC), True
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC), False
    except (ValueError, OverflowError):
        raise ValueError(f"{option} must be like 2026-11-21 or 2026-11-21T09:30, not {text!r}") from None
