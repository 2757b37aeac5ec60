"""``quotahost report``: the history of the volumes as one page, or as a folder of pictures.

What can be checked without Spark is checked before Spark starts, which takes seconds. The terminal shows the page's
table as well.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.cli.console import console, parsed, table, writing
from quotahost.cli.report.progress import Work
from quotahost.errors import QuotahostError
from quotahost.report import wording
from quotahost.report.values import Question, Report
from quotahost.units.parse import parse_duration

PAGES: Final = (".html", ".htm")
_HEADS: Final = ("volume", "consumed", "capacity", "share", "fill rate", "time to hard limit")


def report(
    history: Annotated[str, typer.Option(metavar="DIR", help="Where the pipeline writes its history.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html|DIR", help="One page, or a folder of PNGs.")],
    cluster: Annotated[list[str] | None, typer.Option(help="Only of this cluster; may be repeated.")] = None,
    broker: Annotated[list[str] | None, typer.Option(help="Only of this broker; may be repeated.")] = None,
    volume: Annotated[list[str] | None, typer.Option(help="Only this volume; may be repeated.")] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From 2026-11-21, or 2026-11-21T09:30, in UTC.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="To that time; a day is included whole.")
    ] = None,
    worst: Annotated[int, typer.Option(min=1, max=200, help="How many volumes, the worst ones.")] = 20,
    recent: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Over how long fill rates are; a quarter of the time, 7d at most."),
    ] = None,
) -> None:
    """Draw what the volumes consumed, against their limits, and when they will reach them.

    Reads what the pipeline wrote to its history, on this machine, with 1 GB of memory whatever its size.
    """
    # Looked for and not imported: what can be checked without them is checked first.
    missing = [name for name in ("pyspark", "matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise QuotahostError(f"quotahost report needs {' and '.join(missing)}: pip install 'quotahost[spark]'")
    times = parse_range(since, until)
    span = parsed("--recent", recent, parse_duration) if recent is not None else None
    question = Question(history, tuple(cluster or ()), tuple(broker or ()), tuple(volume or ()), *times, worst, span)
    as_page = _is_page(out)
    with Work() as work:
        found = work.collect(question)
        with writing(out):
            written = work.draw(found, out, as_page)
    _print_table(found)
    typer.echo(f"\n{written}")


def _is_page(out: Path) -> bool:
    """Whether a page is asked for; a folder of pictures otherwise.

    Raises:
        typer.BadParameter: neither can be written there.
    """
    if out.suffix.lower() in PAGES and not out.is_dir():
        if not out.absolute().parent.is_dir():
            raise typer.BadParameter(f"the folder of {out} doesn't exist")
        return True
    if out.is_file() or (out.suffix and not out.is_dir()):
        raise typer.BadParameter(f"{out} is neither a FILE.html nor a folder for PNGs")
    return False


def _print_table(found: Report) -> None:
    rows = [
        [
            wording.title(curve, found),
            wording.show_bytes(curve.newest.last),
            wording.show_bytes(curve.newest.capacity),
            wording.show_share(curve.share),
            wording.show_rate(curve.fill_rate),
            wording.show_to_hard(curve),
        ]
        for curve in found.curves
    ]
    console().print(table(_HEADS, rows))


def parse_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """The first time of ``--from`` and ``--to``, and the time before which the last one is; None is open.

    A time without a zone is UTC, and a day is included whole.

    Raises:
        typer.BadParameter: one is no time, or the range is empty; the message says what to write.
    """
    start = None if since is None else parsed("--from", since, _parse_time)
    end = None if until is None else parsed("--to", until, _parse_time)
    if end is not None and len(until or "") <= len("2026-11-21"):  # no time of day
        end += timedelta(days=1)
    if start is not None and end is not None and end <= start:
        raise typer.BadParameter("--to is not after --from")
    return start, end


def _parse_time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is no time; write it like 2026-11-21 or 2026-11-21T09:30") from None
