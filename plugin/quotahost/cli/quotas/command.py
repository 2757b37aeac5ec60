"""The commands of ``quotahost quotas``, from ``plan`` to ``usage``, read files, ask the cluster, and print the results.

docs/quotas.md describes the files, the commands and their exit codes. ``files`` and ``cluster`` need the libraries of
the extra ``quotas``, which a broker's environment may lack, so the commands import these modules when they run.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer
from rich.console import Console
from rich.text import Text

from quotahost.base.errors import QuotahostError, Unusable
from quotahost.base.text import bounded
from quotahost.cli.asking import ClientConfig, Clusters, check_out, check_packages, parsed
from quotahost.cli.console import begin, console, csv_text, one_line, say, table, whole
from quotahost.cli.quotas.plan import UNITS, Amount, Change, Entity, Plan, Refusals
from quotahost.records.topics import QUOTAS
from quotahost.units.show import show_bytes, show_limit

if TYPE_CHECKING:
    from quotahost.cli.quotas.cluster import Cluster
    from quotahost.cli.quotas.files import Declared
    from quotahost.cli.quotas.usage import Bill

_STYLES: Final = {"add": "green", "change": "yellow", "remove": "red"}
_MOST_KEPT: Final = 20  # rows of quotas that are not managed
_MOST_ROWS: Final = 1000  # rows of a table; more changes are plain lines, because a table's widths take time
_TOPIC: Final = QUOTAS.name
_BILL: Final = ("cluster", "label", "bytes in", "bytes out", "stored x hours", "stored, mean", "stored, last")
_CSV: Final = (
    "cluster", "label", "month", "hours_recorded", "hours_of_month", "bytes_in", "bytes_out", "stored_byte_hours",
    "stored_bytes_mean", "stored_bytes_last",
)  # fmt: skip
_NOTHING: Final = "\nNothing to do: the cluster has what is declared."

quotas = typer.Typer(no_args_is_help=True, help="Quotas as code: declared in files, compared with a cluster, applied.")

_Files: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="quotahost's YAML, or Strimzi's KafkaUser resources.")
]
_Bootstrap: TypeAlias = Annotated[str, typer.Option(metavar="HOST:PORT", help="A broker of the cluster.")]
_Topic: TypeAlias = Annotated[
    str, typer.Option(metavar="TOPIC", help="Topic of the cluster-wide quotas, with the brokers' topics.prefix.")
]
_Prune: TypeAlias = Annotated[bool, typer.Option("--prune", help="Also remove quotas that no file names.")]
_PruneRefused: TypeAlias = Annotated[
    bool, typer.Option("--prune-refused", help="Remove records that brokers refuse: broken ones, or a later version's.")
]
_Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Don't ask.")]
_Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to stdout.")
]
_History: TypeAlias = Annotated[str, typer.Option(metavar="DIR", help="Where the pipeline writes its history.")]
_Month: TypeAlias = Annotated[str | None, typer.Option(metavar="YYYY-MM", help="In UTC; default: last month.")]
_Csv: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the sums as CSV, in bytes.")]
_Properties: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A broker's server.properties.")]

# ---- the commands ----------------------------------------------------------------------------------------------


@quotas.command()
def plan(
    files: _Files, bootstrap: _Bootstrap, client_config: ClientConfig = None, quotas_topic: _Topic = _TOPIC,
    prune: _Prune = False, prune_refused: _PruneRefused = False,
) -> None:  # fmt: skip
    """Show what apply would change. It changes nothing, and ends with 0 whatever it finds."""
    declared = _declared(files)
    with _cluster(bootstrap, client_config, quotas_topic) as cluster:
        planned = _compared(cluster, declared, prune, prune_refused)
        refusals = cluster.change(planned, validate_only=True)
    _show_refusals(console(), refusals)
    say(f"\nPlan: {_counted(planned)}." if planned.changes else _NOTHING)
    if refusals:
        say("The cluster would refuse what is marked as failed.")


@quotas.command()
def apply(
    files: _Files, bootstrap: _Bootstrap, client_config: ClientConfig = None, quotas_topic: _Topic = _TOPIC,
    prune: _Prune = False, prune_refused: _PruneRefused = False, yes: _Yes = False,
) -> None:  # fmt: skip
    """Make the cluster agree with the files. It shows what it would change, and asks first."""
    declared = _declared(files)
    with _cluster(bootstrap, client_config, quotas_topic) as cluster:
        _apply(cluster, declared, yes, prune, prune_refused)


@quotas.command()
def drift(
    files: _Files, bootstrap: _Bootstrap, client_config: ClientConfig = None, quotas_topic: _Topic = _TOPIC,
    prune: _Prune = False,
) -> None:  # fmt: skip
    """Show the differences between files and cluster: ends with 1 if there are any, with 0 if not."""
    declared = _declared(files)
    with _cluster(bootstrap, client_config, quotas_topic) as cluster:
        count = len(_compared(cluster, declared, prune).changes)
    say(f"\nDrift: {count} quota{'s differ' if count > 1 else ' differs'}." if count else "\nNo drift.")
    raise typer.Exit(1 if count else 0)


@quotas.command()
def export(
    bootstrap: _Bootstrap, client_config: ClientConfig = None, quotas_topic: _Topic = _TOPIC, output: _Output = None
) -> None:
    """Write all quotas of the cluster as a file for plan, apply and drift."""
    with _cluster(bootstrap, client_config, quotas_topic) as cluster:
        from quotahost.cli.quotas.files import in_yaml

        present, left_out = {**cluster.client_quotas()}, False
        try:
            present |= cluster.recorded()
        except QuotahostError as error:  # a cluster may have no such topic, or only its operators may see it
            left_out = True
            say(f"left out: all cluster-wide quotas and budgets: {error}", to_stderr=True)
    for words in cluster.warnings:
        say(words, to_stderr=True)
    if output is None:
        say(in_yaml(present), end="")
    else:
        with whole(output) as file:
            file.write_text(in_yaml(present), encoding="utf-8")
    raise typer.Exit(1 if left_out else 0)


@quotas.command()
def import_properties(
    file: _Properties, bootstrap: _Bootstrap, client_config: ClientConfig = None, quotas_topic: _Topic = _TOPIC,
    yes: _Yes = False,
) -> None:  # fmt: skip
    """Take over the cluster-wide quotas that earlier versions kept in brokers' properties."""
    _check_libraries()
    from quotahost.cli.quotas.files import read_properties

    declared = read_properties(file)
    with _cluster(bootstrap, client_config, quotas_topic) as cluster:
        _apply(cluster, declared, yes)


@quotas.command()
def usage(
    files: _Files, history: _History, month: _Month = None, clusters: Clusters = None, csv: _Csv = None
) -> None:  # fmt: skip
    """Sum a month's bytes in, out and stored by the labels of the files, for a bill."""
    check_packages("quotas usage", "pyspark")
    if csv is not None:
        check_out("--csv", csv)  # checked before Spark works for minutes
    labels = _declared(files).labels
    if not labels:
        say("The files have no labels, so all bytes are in one row.", to_stderr=True)
    from quotahost.cli.lab.history import started
    from quotahost.cli.quotas.usage import bill, last_month, parse_month

    chosen = parsed("--month", month or last_month(datetime.now(UTC)), parse_month)
    with started("quotas usage") as spark:
        begin("Summing the month")
        made = bill(spark, history, chosen, tuple(clusters or ()), labels)
    if csv is not None:
        rows: list[tuple[str | float, ...]] = [
            (cluster, label, f"{made.since:%Y-%m}", len(made.hours[cluster]), made.length, *map(_whole, astuple(used)))
            for (cluster, label), used in sorted(made.sums.items())
        ]
        with whole(csv) as file:
            file.write_text(csv_text(_CSV, rows), encoding="utf-8")
    show_bill(made)


# ---- what they have in common ----------------------------------------------------------------------------------


def _check_libraries() -> None:
    check_packages("quotas", "kafka", "yaml", extra="quotas")


def _cluster(bootstrap: str, client_config: Path | None, topic: str) -> AbstractContextManager["Cluster"]:
    _check_libraries()
    from quotahost.cli.quotas.cluster import cluster_at

    return cluster_at(bootstrap, client_config, topic)


def _declared(files: Sequence[Path]) -> "Declared":
    _check_libraries()
    from quotahost.cli.quotas.files import read_declared

    declared = read_declared(files)
    if declared.left_out:
        kinds = ", ".join(sorted({*declared.left_out}))
        say(f"Left out {len(declared.left_out)} resources that are not a KafkaUser: {kinds}")
    if not declared.sections:
        raise Unusable("the files declare nothing; write quotas, cluster-quotas, budgets, or a KafkaUser")
    return declared


def _compared(cluster: "Cluster", declared: "Declared", prune: bool, prune_refused: bool = False) -> Plan:
    """Show what differs, and return the plan."""
    planned, screen = cluster.compare(declared, prune, prune_refused), console()
    for words in cluster.warnings:
        screen.print(Text(one_line(words), style="yellow"), soft_wrap=True)
    _show_changes(screen, planned.changes)
    if kept := planned.not_managed:
        screen.print(Text("\nNot managed (no file names them; they stay, apply --prune removes them):", style="bold"))
        rows = [(str(quota.entity), quota.key, _rate(quota.key, quota.before)) for quota in kept[:_MOST_KEPT]]
        screen.print(table(("for", "quota", "rate"), rows))
        if len(kept) > _MOST_KEPT:
            screen.print(f"... and {len(kept) - _MOST_KEPT} more: quotahost quotas export shows all")
    return planned


def _apply(cluster: "Cluster", declared: "Declared", yes: bool, prune: bool = False, refused: bool = False) -> None:
    """Make the changes. The command ends with 1 if some changes couldn't be made."""
    planned = _compared(cluster, declared, prune, refused)
    if not planned.changes:
        say(_NOTHING)
        return
    if not yes:
        typer.confirm(f"\nApply {_counted(planned)}?", abort=True)
    try:
        refusals = cluster.change(planned)
        left = cluster.not_made(planned, refusals)
    except (KeyboardInterrupt, QuotahostError):
        say("\nNot finished: some changes may be applied; quotahost quotas plan shows what is left.", to_stderr=True)
        raise
    made = len(planned.changes) - len(left)
    say(f"\nApplied {made} of {len(planned.changes)} changes." + (" Not applied:" if left else ""))
    _show_changes(console(), left)
    _show_refusals(console(), refusals)
    raise typer.Exit(1 if left else 0)


# ---- what they show --------------------------------------------------------------------------------------------


def _show_changes(screen: Console, changes: Sequence[Change]) -> None:
    rows = [
        (each.what, str(each.entity), each.key, _rate(each.key, each.before), "->", _rate(each.key, each.after))
        for each in changes
    ]
    if len(rows) > _MOST_ROWS:
        say("\n".join("  ".join(row) for row in rows))
    elif rows:
        screen.print(table(("", "for", "quota", "before", "", "after"), rows, _STYLES))


def _show_refusals(screen: Console, refusals: Refusals) -> None:
    # A message may have a second line for the remedy, so its lines are joined.
    failed = [f"{entity}: {' '.join(refusals[entity].split())}" for entity in sorted(refusals, key=Entity.order)]
    for words in bounded(failed, _MOST_ROWS, "entities"):
        screen.print(Text.assemble(("failed ", "bold red"), one_line(words)), soft_wrap=True)


def show_bill(made: "Bill") -> None:
    sums = sorted(made.sums.items())
    rows = [(cluster, label or "(no label)", *_shown_bytes(astuple(used))) for (cluster, label), used in sums]
    total = [sum(column) for column in zip(*(astuple(used) for _, used in sums), strict=True)]
    console().print(table(_BILL, [*rows, ("", "all", *_shown_bytes(total))]))
    of = "of what is recorded: clients with cluster-wide quotas, topics of budgets"
    say(f"\nMonth {made.since:%Y-%m}, in UTC, {of}.")
    for words in made.missing:
        say(f"Not recorded: {words}")
    for cluster in sorted({cluster for cluster, _ in made.sums}):
        if (recorded := len(made.hours[cluster])) < made.length:
            say(one_line(f"Incomplete, cluster {cluster}: {recorded} of {made.length} hours are recorded"))
    if datetime.now(UTC) < made.written_by:
        say(f"Incomplete: the month's last minutes are in the history from {made.written_by:%Y-%m-%d %H:%M} on")


def _shown_bytes(amounts: Sequence[float]) -> list[str]:
    return [show_bytes(amount) + (" h" if column == "stored x hours" else "")
            for column, amount in zip(_BILL[2:], amounts, strict=True)]  # fmt: skip


def _whole(amount: float) -> float:
    return round(amount) if math.isfinite(amount) else amount  # a client that writes records may claim any amount


def _counted(planned: Plan) -> str:
    """Return the counts as ``2 to add, 1 to change, 0 to remove``."""
    kinds = [change.what for change in planned.changes]
    return ", ".join(f"{kinds.count(kind)} to {kind}" for kind in _STYLES)


def _rate(key: str, rate: Amount | None) -> str:
    """Return the rate with its unit, or ``none`` if there is no quota."""
    if rate is None or isinstance(rate, str):
        return "none" if rate is None else rate
    return show_limit(None if math.isinf(rate) else rate, UNITS.get(key, ""))
