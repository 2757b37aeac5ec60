"""``quotahost report`` and ``quotahost replay`` read their options, and print tables, or a replay as JSON.

``history`` reads the history, ``play`` plays a replay, and ``pages`` makes the HTML page with figures of ``drawing``.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from quotahost.base.errors import QuotahostError
from quotahost.base.text import printable
from quotahost.cli.asking import Clusters, Since, Until, check_out, check_packages, parse_range, parsed, windows_of
from quotahost.cli.console import begin, console, json_text, say, table, whole
from quotahost.cli.lab import play
from quotahost.cli.lab.curves import Question, Report
from quotahost.cli.property_files import read_broker_file
from quotahost.settings.broker import Settings
from quotahost.settings.storage import StorageSettings
from quotahost.units.parse import parse_duration
from quotahost.units.show import UNKNOWN, show_at, show_bytes, show_factor, show_rate, show_share, show_span

_MOST: Final = 20  # rows of a table
_FACTORS: Final = ("factor of", "settings", "OPEN", "THROTTLE", "PAUSE", "PAUSEs", "lowest factor", "first PAUSE")
_VOLUMES: Final = ("volume", "slowed", "paused", "lowest factor", "first PAUSE", "fullest", "")
_BUDGETS: Final = ("budget", "held back", "used up", "most used", "when", "")
_CLIENTS: Final = ("user", "client-id", "brokers", "rate", "slowed", "paused")
_REPORT: Final = ("volume", "consumed", "capacity", "share", "fill rate", "hard limit reached")


# ---- the report ----


def report(
    history: Annotated[str, typer.Option(metavar="DIR", help="Where the pipeline writes its history.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="The page.")],
    cluster: Clusters = None,
    broker: Annotated[list[str] | None, typer.Option(help="Only of this broker; may be repeated.")] = None,
    volume: Annotated[list[str] | None, typer.Option(help="Only this volume; may be repeated.")] = None,
    since: Since = None,
    until: Until = None,
    worst: Annotated[int, typer.Option(min=1, max=200, help="How many volumes to show, the worst first.")] = 20,
    recent: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Period of fill rates (default: a quarter of the time, at most 7d)."),
    ] = None,
) -> None:
    """Draw what each volume consumed, with its limits, and forecast when it will reach them.

    Reads the pipeline's history on this machine, with 1 GB of memory whatever the history's size.
    """
    check_packages("report", "pyspark", "matplotlib", "jinja2")
    times = parse_range(since, until)
    span = parsed("--recent", recent, parse_duration).total_seconds() if recent is not None else None
    question = Question(history, tuple(cluster or ()), tuple(broker or ()), tuple(volume or ()), *times, worst, span)
    check_out("--out", out, ".html")
    from quotahost.cli.lab.history import started
    from quotahost.cli.lab.history import worst as worst_of
    from quotahost.cli.lab.pages import report_page

    with started("report") as spark:
        answer = worst_of(spark, question)
    shown = report_table(answer)
    begin("Drawing")
    with whole(out) as file:
        file.write_text(report_page(answer, shown), encoding="utf-8")
    console().print(table(shown.heads, shown.rows))
    say(f"\n{out}")


def report_table(report: Report) -> play.Table:
    rows = [
        [report.title(curve), show_bytes(curve.latest.last), show_bytes(curve.latest.capacity),
         show_share(curve.share), show_rate(curve.fill_rate), curve.show_when(curve.latest.hard)]
        for curve in report.curves
    ]  # fmt: skip
    return play.Table(_REPORT, rows, "volumes", report.reported - len(rows))


# ---- the replay ----


def replay(
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="Where the pipeline writes its history.")],
    properties: Annotated[Path, typer.Argument(metavar="server.properties", help="The settings in question.")],
    then: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Brokers' file of that time (default: the same settings).")
    ] = None,
    quotas: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Judge the budgets of this quotas file; may be repeated.")
    ] = None,
    quotas_then: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Quotas file of that time (default: the same budgets).")
    ] = None,
    cluster: Clusters = None,
    since: Since = None,
    until: Until = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Also draw it as an HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what these settings would have done: the factor, who would have been paused, and how full volumes would be.

    The limits of that time come from the history, which has them with each reading.
    All other settings of that time come from --then.
    """
    check_packages("replay", "pyspark", *(() if out is None else ("matplotlib", "jinja2")))
    if out is not None:
        check_out("--out", out, ".html")
    plan = plan_of(properties, then)
    budgets = budgets_of(quotas, quotas_then, plan)
    question = Question(history, tuple(cluster or ()), (), (), *parse_range(since, until))
    from quotahost.cli.lab.history import budget_uses, everything, started

    with started("replay") as spark:
        readings = everything(spark, question)
        uses = budget_uses(spark, readings, budgets) if budgets else []
    begin("Replaying")
    played = play.play(readings, plan)
    judged, notes = play.judge_budgets(uses, budgets, played.until - played.since)
    if judged and not quotas_then:
        notes.append("there is no --quotas-then, so replay assumes that these budgets were in force then")
    played = replace(played, budgets=tuple(judged), notes=(*played.notes, *notes))
    if out is not None:
        from quotahost.cli.lab.pages import replay_page

        begin("Drawing")
        with whole(out) as file:
            file.write_text(replay_page(played, properties.name, tables_of(played)), encoding="utf-8")
    if json:
        say(as_json(played))
        return
    _show(played)
    if out is not None:
        say(f"\n{out}")


def plan_of(properties: Path, then: Path | None) -> play.Plan:
    """The settings of both files. Raises QuotahostError if a file can't be read, or if its settings are wrong."""
    file = read_broker_file(properties)
    new = Settings.from_properties(file.properties)
    before = new if then is None else Settings.from_properties(read_broker_file(then).properties)
    # The limits are removed last, because defaults of other properties depend on whether there are limits.
    static = before.static.model_copy(update={"storage": StorageSettings()})
    return play.Plan(new, before.model_copy(update={"static": static}), windows_of(file))


def budgets_of(files: Sequence[Path] | None, then: Sequence[Path] | None, plan: play.Plan) -> play.Declared:
    """The budgets in these files. Raises QuotahostError if a file can't be read, or no budget would have an effect."""
    if not files:
        if then:
            raise typer.BadParameter("is of no use without --quotas", param_hint="--quotas-then")
        return {}
    if plan.new.budgets == "off":
        raise QuotahostError("--quotas needs budgets=on in the settings: with budgets=off no budget slows a producer")
    check_packages("replay --quotas", "yaml", extra="quotas")
    from quotahost.cli.quotas.files import read_declared

    new, before = (
        {entity.budget: entity.as_budget(keys) for entity, keys in read_declared(of).quotas.items() if entity.budget}
        for of in (files, then or files)
    )
    if not new:
        raise QuotahostError(f"{', '.join(map(str, files))} declares no budgets; write some, or leave --quotas out")
    shares = plan.then.budget_soft_share, plan.new.budget_soft_share
    return {name: ((before.get(name, of), shares[0]), (of, shares[1])) for name, of in new.items()}


def _show(played: play.Replay) -> None:
    screen = console()
    for note in played.notes:
        screen.print(Text(note, style="yellow"), soft_wrap=True)
    for number, (heads, rows, what, more) in enumerate(tables_of(played)):
        if number:
            screen.print()
        screen.print(table(heads, rows))
        if more:
            screen.print(Text(f"{len(rows)} of {len(rows) + more:,} {what} (--json has all)", style="dim"))


# ---- as tables ----


def tables_of(replay: play.Replay) -> list[play.Table]:
    """Tables of factors, volumes, budgets and clients, as far as there are any, with the rows held back longest."""
    parts = (
        (_VOLUMES, [_volume_row(volume, replay) for volume in replay.volumes], "volumes"),
        (_BUDGETS, [_budget_row(budget, replay) for budget in replay.budgets], "budgets"),
        (_CLIENTS, [_client_row(client) for client in replay.clients], "clients"),
    )
    return [
        play.Table(_FACTORS, [row for factor in replay.factors for row in _factor_rows(factor, replay)]),
        *(
            play.Table(heads, rows[:_MOST], f"{what} held back longest", len(rows[_MOST:]))
            for heads, rows, what in parts
            if rows
        ),
    ]


def _factor_rows(factor: play.ReplayedFactor, replay: play.Replay) -> list[list[str]]:
    rows = [[replay.whose(factor), "then", *_times(factor.then)], ["", "these", *_times(factor.new)]]
    if factor.unknown_s >= 1:
        rows.append(["", f"no readings for {_seconds(factor.unknown_s)}", *[""] * 6])
    return rows


def _times(times: play.StateTimes) -> list[str]:
    lowest, first_pause = show_factor(times.lowest), _time(times.first_pause)
    return [_seconds(times.open_s), *_held(times), str(times.pauses), lowest, first_pause]


def _volume_row(volume: play.ReplayedVolume, replay: play.Replay) -> list[str]:
    remarks = [f"full at {_time(volume.full_at)}"] if volume.full_at is not None else []
    remarks += ["estimated"] if volume.growth.estimated else []
    then, new = (
        [*_held(of), show_factor(of.lowest), _time(of.first_pause), show_bytes(peak)]
        for of, peak in zip((volume.then, volume.new), volume.peaks, strict=True)
    )
    *changes, fullest = map(_change, then, new)
    title = volume.name.title(replay.several)
    return [title, *changes, f"{fullest} of {show_bytes(volume.capacity)}", ", ".join(remarks)]


def _budget_row(budget: play.ReplayedBudget, replay: play.Replay) -> list[str]:
    then, new = (
        ["not known"] * 2 if of is None else [_seconds(of.held_s), _seconds(of.used_up_s)]
        for of in (budget.then, budget.new)
    )
    name = [printable(budget.cluster)] * replay.several + [printable(budget.budget)]
    used = f"{show_bytes(budget.peak)} of {_change(*map(show_bytes, budget.sizes))}"
    gap = f"no readings for {_seconds(budget.unknown_s)}" if budget.unknown_s >= 1 else ""
    return [" / ".join(name), *map(_change, then, new), used, _time(budget.peak_at), gap]


def _client_row(client: play.ReplayedClient) -> list[str]:
    names = printable(client.user), printable(client.client), str(len(client.brokers)), f"{show_bytes(client.rate)}/s"
    return [*names, *map(_change, _held(client.then), _held(client.new))]


def _held(times: play.StateTimes) -> list[str]:
    return [_seconds(times.throttle_s), _seconds(times.pause_s)]


def _change(then: str, new: str) -> str:
    return then if then == new else f"{then} → {new}"


def _seconds(seconds: float) -> str:
    return show_span(seconds) if seconds >= 0.5 else UNKNOWN


def _time(at: float | None) -> str:
    return UNKNOWN if at is None else show_at(at)


# ---- as JSON ----


def as_json(replay: play.Replay) -> str:
    """The replay as JSON, with each change of a factor, but without the volumes' readings.

    Times are seconds since 1970, sizes are bytes, and factors are 0 to 1.
    """
    factors = [
        {"cluster": factor.cluster, "broker": factor.broker or None, "then": asdict(factor.then),
         "new": asdict(factor.new), "unknown_s": factor.unknown_s,
         "course": [point._asdict() for point in factor.points]}
        for factor in replay.factors
    ]  # fmt: skip
    volumes = [
        {**volume.name._asdict(), "then": asdict(volume.then) | {"peak": volume.peaks[0]},
         "new": asdict(volume.new) | {"peak": volume.peaks[1], "full_at": volume.full_at},
         "capacity": volume.capacity, "estimated": volume.growth.estimated}
        for volume in replay.volumes
    ]  # fmt: skip
    others = {"budgets": [*map(asdict, replay.budgets)], "clients": [*map(asdict, replay.clients)]}
    span = {"since": replay.since, "until": replay.until, "step": replay.step}
    return json_text({**span, "factors": factors, "volumes": volumes, **others, "notes": replay.notes})
