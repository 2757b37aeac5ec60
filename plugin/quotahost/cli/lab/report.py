"""``quotahost report``: the command, and its table; ``history`` reads, ``drawing`` and ``pages`` make the page."""

from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.cli.asking import Clusters, Since, Until, check_out, check_packages, parse_range, parsed
from quotahost.cli.console import begin, console, say, table, whole
from quotahost.cli.lab.curves import Question, Report
from quotahost.cli.lab.play import Table
from quotahost.units.parse import parse_duration
from quotahost.units.show import show_bytes, show_rate, show_share

_REPORT: Final = ("volume", "consumed", "capacity", "share", "fill rate", "hard limit reached")


def report(
    history: Annotated[str, typer.Option(metavar="DIR", help="Where the pipeline writes its history.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="The page.")],
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
    span = parsed("--recent", recent, parse_duration).total_seconds() if recent is not None else None
    question = Question(history, tuple(cluster or ()), tuple(broker or ()), tuple(volume or ()), *times, worst, span)
    check_out("--out", out, ".html")
    from quotahost.cli.lab.history import started
    from quotahost.cli.lab.history import worst as worst_of
    from quotahost.cli.lab.pages import report_page

    with started("report", history) as spark:
        answer = worst_of(spark, question)
    shown = report_table(answer)
    begin("Drawing")
    with whole(out) as file:
        file.write_text(report_page(answer, shown), encoding="utf-8")
    console().print(table(shown.heads, shown.rows))
    say(f"\n{out}")


def report_table(report: Report) -> Table:
    rows = [
        [report.title(curve), show_bytes(curve.newest.last), show_bytes(curve.newest.capacity),
         show_share(curve.share), show_rate(curve.fill_rate), curve.show_when(curve.newest.hard)]
        for curve in report.curves
    ]  # fmt: skip
    return Table(_REPORT, rows, "volumes", report.known - len(rows))
