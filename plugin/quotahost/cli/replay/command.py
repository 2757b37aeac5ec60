"""``quotahost replay``: what a properties file would have done in the time that the history tells of.

What can be checked without Spark is checked before Spark starts, which takes seconds.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from quotahost.cli.console import console, parsed, table, writing
from quotahost.cli.property_files import read_broker_file
from quotahost.cli.replay.as_json import as_json
from quotahost.cli.report.command import PAGES, parse_range
from quotahost.cli.report.progress import Work
from quotahost.cli.simulate.options import parse_windows
from quotahost.errors import QuotahostError
from quotahost.replay import wording
from quotahost.replay.group import Plan
from quotahost.replay.play import play
from quotahost.replay.values import Replay
from quotahost.report.values import Question
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

_MOST_ROWS: Final = 20
_LIMITS: Final = f"{PREFIX}static.storage."


def replay(
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="Where the pipeline writes its history.")],
    properties: Annotated[Path, typer.Argument(metavar="server.properties", help="The settings in question.")],
    then: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The brokers' file of then; the same settings otherwise.")
    ] = None,
    cluster: Annotated[list[str] | None, typer.Option(help="Only of this cluster; may be repeated.")] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From 2026-11-21, or 2026-11-21T09:30, in UTC.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="To that time; a day is included whole.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Draw it as one page, too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what these settings would have done: the factor, who would have been paused, and how full volumes were.

    Limits of then are those that the history has of each reading. All else of then is as in --then.
    """
    needed = ("pyspark",) if out is None else ("pyspark", "matplotlib", "jinja2")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise QuotahostError(f"quotahost replay needs {' and '.join(missing)}: pip install 'quotahost[spark]'")
    if out is not None and not (out.suffix.lower() in PAGES and out.absolute().parent.is_dir()):
        raise typer.BadParameter(f"{out} must be a FILE.html in a folder that exists", param_hint="--out")
    plan = plan_of(properties, then)
    question = Question(history, tuple(cluster or ()), (), (), *parse_range(since, until))
    with Work() as work:
        found = work.everything(question)
        work.begin("Replaying")
        played = play(found, plan)
        if out is not None:
            with writing(out):
                work.draw_replay(played, properties.name, out)
    if json:
        typer.echo(as_json(played))
    else:
        _show(played)
        if out is not None:
            typer.echo(f"\n{out}")


def plan_of(properties: Path, then: Path | None) -> Plan:
    """The settings of both files.

    Raises:
        QuotahostError: one can't be read, or its settings are wrong.
    """
    file = read_broker_file(properties)
    before = file if then is None else read_broker_file(then)
    without = {name: text for name, text in before.properties.items() if not name.startswith(_LIMITS)}
    number = parsed("quota.window.num", file.get("quota.window.num") or "11", parse_windows)
    seconds = parsed("quota.window.size.seconds", file.get("quota.window.size.seconds") or "1", parse_windows)
    return Plan(Settings.from_properties(file.properties), Settings.from_properties(without), (number, seconds * 1000))


def _show(played: Replay) -> None:
    screen = console()
    for note in played.notes:
        screen.print(Text(note, style="yellow"), soft_wrap=True)
    screen.print(table(wording.FACTOR_HEADS, wording.factor_rows(played)))
    screen.print()
    screen.print(table(wording.VOLUME_HEADS, wording.volume_rows(played, _MOST_ROWS)))
    if (more := len(played.volumes) - _MOST_ROWS) > 0:
        screen.print(Text(f"and {more:,} more volumes (--json has all)", style="dim"))
    if played.clients:
        screen.print()
        screen.print(table(wording.CLIENT_HEADS, wording.client_rows(played, _MOST_ROWS)))
        if (more := len(played.clients) - _MOST_ROWS) > 0:
            screen.print(Text(f"and {more:,} more clients (--json has all)", style="dim"))
