"""What the commands of ``quotahost quotas`` do: read the files, compare, show, and change the cluster.

Each command shows the same plan: what the cluster has to change, what it keeps since nobody declared it, and what it
would refuse. Names come from outside, so all of it goes through ``shown``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from quotahost.cli.console import console, shown, table, writing
from quotahost.cli.property_files import read_client_config
from quotahost.cli.quotas.client_quotas import connected
from quotahost.cli.quotas.cluster import Cluster
from quotahost.cli.quotas.declared import DeclarationError, Declared, read_declared, read_properties
from quotahost.cli.quotas.plan import UNITS, Change, Plan, Refusal
from quotahost.cli.quotas.yaml_file import declarable, in_yaml
from quotahost.errors import QuotahostError
from quotahost.units.show import show_limit

_NOTHING: Final = "\nNothing to do: the cluster has what is declared."
_STYLES: Final = {"add": "green", "change": "yellow", "remove": "red"}
_MOST_KEPT: Final = 20  # rows of what is not managed
_MOST_ROWS: Final = 1000  # of a table; more changes are shown as plain lines, for which no widths are worked out


@dataclass(frozen=True, slots=True)
class Where:
    """The cluster of a command.

    Attributes:
        bootstrap: HOST:PORT of its brokers.
        client_config: the file that says how to connect; None to connect as anybody can.
        topic: that of its cluster-wide quotas.
    """

    bootstrap: str
    client_config: Path | None
    topic: str

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        """The cluster, while the context lasts; whatever can't be used ends the command with 2."""
        try:
            config = {} if self.client_config is None else read_client_config(self.client_config)
            with connected(self.bootstrap, config) as connection:
                yield Cluster(connection, {**config, "bootstrap.servers": self.bootstrap}, self.topic)
        except DeclarationError:
            raise
        except QuotahostError as error:
            raise DeclarationError(str(error)) from None


# ---- the commands ----------------------------------------------------------------------------------


def plan(files: Sequence[Path], where: Where, prune: bool) -> None:
    """Show what would change, and what the cluster would refuse."""
    declared = _read(files)
    with where.cluster() as cluster:
        planned = _compared(cluster, declared, prune)
        refusals = cluster.validate(planned)
    _show_refusals(console(), refusals)
    _say(f"\nPlan: {_counted(planned)}." if planned.changes else _NOTHING)
    if refusals:
        _say("The cluster would refuse what is marked as failed.")


def apply(files: Sequence[Path], where: Where, prune: bool, yes: bool) -> bool:
    """Change what differs; whether all of it was done."""
    return _apply(_read(files), where, prune, yes)


def import_properties(file: Path, where: Where, yes: bool) -> bool:
    """Take over the cluster-wide quotas of a properties file; whether all of it was done."""
    return _apply(read_properties(file), where, prune=False, yes=yes)


def _apply(declared: Declared, where: Where, prune: bool, yes: bool) -> bool:
    with where.cluster() as cluster:
        planned = _compared(cluster, declared, prune)
        if not planned.changes:
            _say(_NOTHING)
            return True
        if not yes:
            typer.confirm(f"\nApply {_counted(planned)}?", abort=True)
        refusals = cluster.apply(planned)
        left = cluster.wait_until_made(planned, refusals)
    made = len(planned.changes) - len(left)
    _say(f"\nApplied {made} of {len(planned.changes)} changes." + (" Not applied:" if left else ""))
    _show_changes(console(), left)
    _show_refusals(console(), refusals)
    return not refusals and not left


def drift(files: Sequence[Path], where: Where, prune: bool) -> bool:
    """Show what differs; whether anything does."""
    declared = _read(files)
    with where.cluster() as cluster:
        count = len(_compared(cluster, declared, prune).changes)
    _say(f"\nDrift: {count} quota{'s differ' if count > 1 else ' differs'}." if count else "\nNo drift.")
    return bool(count)


def export(where: Where, output: Path | None) -> bool:
    """Write the cluster's quotas to a file, or to stdout; whether all of them are in it."""
    missing = []
    with where.cluster() as cluster:
        present = dict(cluster.client_quotas())
        try:
            present |= cluster.cluster_quotas()
        except DeclarationError as error:  # a cluster may have none, and nobody but its operators the right to see that
            missing.append(f"left out: all cluster-wide quotas: {error}")
    missing += [
        f"left out: {entity} has {key} {rate}, by which Kafka limits nobody"
        for entity, rates in present.items()
        for key, rate in rates.items()
        if not declarable(entity, rate)
    ]
    for words in (*cluster.warnings, *missing):
        typer.echo(shown(words), err=True)
    text = in_yaml(present)
    if output is None:
        typer.echo(text, nl=False)
    else:
        with writing(output):
            output.write_text(text, encoding="utf-8")
    return not missing


def _read(files: Sequence[Path]) -> Declared:
    declared = read_declared(files)
    if declared.left_out:
        names = ", ".join(declared.left_out[:5]) + (", ..." if len(declared.left_out) > 5 else "")
        _say(f"Left out {len(declared.left_out)}, which are no KafkaUser: {names}")
    if not declared.sections:
        raise DeclarationError("the files declare nothing; write quotas, cluster-quotas, or a KafkaUser")
    return declared


def _compared(cluster: Cluster, declared: Declared, prune: bool) -> Plan:
    """What differs, which is shown, too."""
    planned = cluster.compare(declared, prune)
    screen = console()
    for words in cluster.warnings:
        screen.print(Text(shown(words), style="yellow"), soft_wrap=True)
    _show_changes(screen, planned.changes)
    _show_not_managed(screen, planned.not_managed)
    return planned


# ---- what they show --------------------------------------------------------------------------------


def _show_changes(screen: Console, changes: Sequence[Change]) -> None:
    """Before and after of each change; nothing if there is none."""
    if not changes:
        return
    rows = [
        (change.what, shown(str(change.entity)), change.key, _rate(change.key, change.before), "->",
         _rate(change.key, change.after))
        for change in changes
    ]  # fmt: skip
    if len(rows) > _MOST_ROWS:
        typer.echo("\n".join("  ".join(row) for row in rows))
        return
    grid = table(("", "for", "quota", "before", "", "after"), ())
    for what, entity, *others in rows:
        grid.add_row(Text(what, style=_STYLES[what]), Text(entity), *others)
    screen.print(grid)


def _show_not_managed(screen: Console, kept: Sequence[Change]) -> None:
    """What no file names: at most 20 rows of it."""
    if not kept:
        return
    screen.print(Text("\nNot managed (no file names them; they stay, --prune removes them):", style="bold"))
    rows = [(str(quota.entity), quota.key, _rate(quota.key, quota.before)) for quota in kept[:_MOST_KEPT]]
    screen.print(table(("for", "quota", "rate"), rows))
    if len(kept) > _MOST_KEPT:
        screen.print(f"... and {len(kept) - _MOST_KEPT} more: quotahost quotas export shows all")


def _show_refusals(screen: Console, refusals: Sequence[Refusal]) -> None:
    """What failed, and why."""
    for refusal in sorted(refusals[:_MOST_ROWS], key=lambda refusal: refusal.entity.order()):
        words = shown(f"{refusal.entity}: {refusal.reason}")
        screen.print(Text.assemble(("failed ", "bold red"), words), soft_wrap=True)
    if len(refusals) > _MOST_ROWS:
        screen.print(f"... and {len(refusals) - _MOST_ROWS} more failed")


def _counted(planned: Plan) -> str:
    """``2 to add, 1 to change, 0 to remove``."""
    kinds = [change.what for change in planned.changes]
    return ", ".join(f"{kinds.count(kind)} to {kind}" for kind in _STYLES)


def _rate(key: str, rate: float | None) -> str:
    """With its unit; ``none`` where there is no quota."""
    if rate is None:
        return "none"
    return show_limit(None if math.isinf(rate) else rate, UNITS.get(key, ""))


def _say(text: str) -> None:
    typer.echo(shown(text))
