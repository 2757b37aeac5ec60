"""``quotahost report``: the history of the volumes as one page, or as a folder of pictures.

The history is asked for the worst volumes, and each of them is drawn. The terminal shows the page's table as well.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.cli.console import console, parsed, say, table, writing
from quotahost.cli.lab.asking import PAGES, Clusters, Since, Until, Work, check_packages, parse_range
from quotahost.cli.lab.curves import Question, Report
from quotahost.units.parse import parse_duration
from quotahost.units.show import show_bytes, show_rate, show_share

_HEADS: Final = ("volume", "consumed", "capacity", "share", "fill rate", "time to hard limit")
_LONGEST: Final = 80  # characters of a picture's name; file systems take 255 bytes


def report(
    history: Annotated[str, typer.Option(metavar="DIR", help="Where the pipeline writes its history.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html|DIR", help="One page, or a folder of PNGs.")],
    cluster: Clusters = None,
    broker: Annotated[list[str] | None, typer.Option(help="Only of this broker; may be repeated.")] = None,
    volume: Annotated[list[str] | None, typer.Option(help="Only this volume; may be repeated.")] = None,
    since: Since = None,
    until: Until = None,
    worst: Annotated[int, typer.Option(min=1, max=200, help="How many volumes, the worst ones.")] = 20,
    recent: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Over how long fill rates are; a quarter of the time, 7d at most."),
    ] = None,
) -> None:
    """Draw what the volumes consumed, against their limits, and when they will reach them.

    Reads what the pipeline wrote to its history, on this machine, with 1 GB of memory whatever its size.
    """
    check_packages("report", "pyspark", "matplotlib", "jinja2")
    times = parse_range(since, until)
    span = parsed("--recent", recent, parse_duration) if recent is not None else None
    question = Question(history, tuple(cluster or ()), tuple(broker or ()), tuple(volume or ()), *times, worst, span)
    render = _write_page if _is_page(out) else _write_pictures
    with Work() as work:
        from quotahost.cli.lab import history as read

        answer = read.worst(work.spark("report"), question, work.begin)
        drawn = work.draw(len(answer.curves))
        with writing(out):
            written = render(answer, out, drawn)
    console().print(table(_HEADS, _rows(answer)))
    say(f"\n{written}")


def _is_page(out: Path) -> bool:
    """Whether a page is asked for, not a folder of pictures. Raises typer.BadParameter if neither can be written."""
    if out.suffix.lower() in PAGES and not out.is_dir():
        if not out.absolute().parent.is_dir():
            raise typer.BadParameter(f"the folder of {out} doesn't exist")
        return True
    if out.is_file() or (out.suffix and not out.is_dir()):
        raise typer.BadParameter(f"{out} is neither a FILE.html nor a folder for PNGs")
    return False


def _write_page(report: Report, out: Path, drawn: Callable[[int], None]) -> str:
    from quotahost.cli.lab.pages import report_page

    out.write_text(report_page(report, drawn), encoding="utf-8")
    return str(out)


def _write_pictures(report: Report, out: Path, drawn: Callable[[int], None]) -> str:
    """``01-CLUSTER-BROKER-VOLUME.png`` and so on, worst first, in a folder that is made if it is absent."""
    from quotahost.cli.lab.drawing import save_volume

    out.mkdir(parents=True, exist_ok=True)
    for number, curve in enumerate(report.curves, 1):
        # Letters, digits, dots and dashes: no name of a volume may lead out of the folder. Two volumes may become alike
        # by that; the number in front keeps their files apart.
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(curve.name)).replace("..", "_")[:_LONGEST]
        save_volume(curve, report, out / f"{number:02}-{name}.png")
        drawn(number)
    return f"{len(report.curves)} pictures in {out}"


def _rows(report: Report) -> list[list[str]]:
    return [
        [report.title(curve), show_bytes(curve.newest.last), show_bytes(curve.newest.capacity),
         show_share(curve.share), show_rate(curve.fill_rate), curve.show_time_to(curve.newest.hard)]
        for curve in report.curves
    ]  # fmt: skip
