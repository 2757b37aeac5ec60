"""What the commands of ``quotahost quotas`` do: read the files, compare, show, and change the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer
from rich.text import Text

from quotahost.cli.console import console, shown, writing
from quotahost.cli.property_files import read_client_config
from quotahost.cli.quotas.showing import counted, show_changes, show_not_managed, show_refusals
from quotahost.declared.changes import Change, Plan
from quotahost.declared.document import Declared, read_declared
from quotahost.declared.entities import Quotas
from quotahost.declared.problems import DeclarationError
from quotahost.declared.target import Target, target
from quotahost.declared.written import declarable, in_yaml
from quotahost.errors import QuotahostError

_NOTHING: Final = "\nNothing to do: the cluster has what is declared."


def plan(files: Sequence[Path], bootstrap: str, client_config: Path | None, prune: bool) -> None:
    """Show what would change, and what Kafka would refuse."""
    declared = _read(files)
    with _target(bootstrap, client_config) as cluster:
        found = _compared(cluster, declared, prune)
        refusals = cluster.validate(found.changes)
    show_refusals(console(), refusals)
    _say(f"\nPlan: {counted(found.changes)}." if found.changes else _NOTHING)
    if refusals:
        _say("Kafka would refuse what is marked as failed.")


def apply(files: Sequence[Path], bootstrap: str, client_config: Path | None, prune: bool, yes: bool) -> bool:
    """Change what differs; whether all of it was done."""
    declared = _read(files)
    with _target(bootstrap, client_config) as cluster:
        found = _compared(cluster, declared, prune)
        if not found.changes:
            _say(_NOTHING)
            return True
        if not yes:
            typer.confirm(f"\nApply {counted(found.changes)}?", abort=True)
        refusals = cluster.apply(found.changes)
        left = cluster.wait_until_made(found.changes, refusals)
    _report(found.changes, left)
    show_refusals(console(), refusals)
    return not refusals and not left


def _report(changes: Sequence[Change], left: Sequence[Change]) -> None:
    made = len(changes) - len(left)
    _say(f"\nApplied {made} of {len(changes)} changes." + (" Not applied:" if left else ""))
    show_changes(console(), left)


def drift(files: Sequence[Path], bootstrap: str, client_config: Path | None, prune: bool) -> bool:
    """Show what differs; whether anything does."""
    declared = _read(files)
    with _target(bootstrap, client_config) as cluster:
        found = _compared(cluster, declared, prune)
    count = len(found.changes)
    _say(f"\nDrift: {count} quota{'s differ' if count > 1 else ' differs'}." if count else "\nNo drift.")
    return bool(count)


def export(bootstrap: str, client_config: Path | None, output: Path | None) -> None:
    """Write the cluster's quotas to a file, or to stdout."""
    with _target(bootstrap, client_config) as cluster:
        present = cluster.present()
    for words in (*cluster.warnings, *_left_out(present)):
        typer.echo(shown(words), err=True)
    text = in_yaml(present)
    if output is None:
        typer.echo(text, nl=False)
        return
    with writing(output):
        output.write_text(text, encoding="utf-8")


def _left_out(present: Quotas) -> Iterator[str]:
    for entity, each in present.items():
        for key, value in each.items():
            if not declarable(entity, value):
                yield f"left out: {entity} has {key} {value}, by which Kafka limits nobody"


def _read(files: Sequence[Path]) -> Declared:
    declared = read_declared(files)
    if declared.left_out:
        names = ", ".join(declared.left_out[:5]) + (", ..." if len(declared.left_out) > 5 else "")
        _say(f"Left out {len(declared.left_out)}, which are no KafkaUser: {names}")
    if not declared.sections:
        raise DeclarationError("the files declare nothing; write quotas, cluster-quotas, or a KafkaUser")
    return declared


def _compared(cluster: Target, declared: Declared, prune: bool) -> Plan:
    """What differs, which is shown, too."""
    found = cluster.compare(declared, prune)
    screen = console()
    for words in cluster.warnings:
        screen.print(Text(shown(words), style="yellow"), soft_wrap=True)
    show_changes(screen, found.changes)
    show_not_managed(screen, found.not_managed)
    return found


@contextmanager
def _target(bootstrap: str, client_config: Path | None) -> Iterator[Target]:
    """The cluster; whatever can't be used ends the command with 2."""
    try:
        config = {} if client_config is None else read_client_config(client_config)
        with target(bootstrap, config) as cluster:
            yield cluster
    except DeclarationError:
        raise
    except QuotahostError as error:
        raise DeclarationError(str(error)) from None


def _say(text: str) -> None:
    typer.echo(shown(text))
