"""``quotahost quotas plan|apply|drift|export|import-properties``: their options and exit codes.

Each ends with 2 if a file or the cluster can't be used. ``drift`` ends with 1 if something differs, ``apply`` and
``import-properties`` if something couldn't be changed, ``export`` if something had to be left out.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeAlias

import typer

from quotahost.errors import QuotahostError
from quotahost.records.topics import QUOTAS

quotas = typer.Typer(no_args_is_help=True, help="Quotas as code: declared in files, compared with a cluster, applied.")

_Files: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="quotahost's YAML, or KafkaUser resources of Strimzi's.")
]
_Bootstrap: TypeAlias = Annotated[str, typer.Option(metavar="HOST:PORT", help="A broker of the cluster.")]
_Config: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        "--command-config",
        metavar="FILE",
        help="How to connect, in the names of librdkafka or of Kafka's Java client; without, as anybody can.",
    ),
]
_Topic: TypeAlias = Annotated[
    str, typer.Option(metavar="TOPIC", help="Topic of the cluster-wide quotas, with the brokers' topics.prefix.")
]
_Prune: TypeAlias = Annotated[bool, typer.Option("--prune", help="Remove what no file names; otherwise it stays.")]
_Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


class _Missing(QuotahostError):
    """A library that the commands need is missing."""

    exit_code = 2


@quotas.command()
def plan(
    files: _Files,
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    quotas_topic: _Topic = QUOTAS.name,
    prune: _Prune = False,
) -> None:
    """Show what apply would change. It changes nothing, and ends with 0 whatever it finds."""
    do = _actions()
    do.plan(files, do.Where(bootstrap, client_config, quotas_topic), prune)


@quotas.command()
def apply(
    files: _Files,
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    quotas_topic: _Topic = QUOTAS.name,
    prune: _Prune = False,
    yes: _Yes = False,
) -> None:
    """Make the cluster agree with the files. It shows what it would change, and asks first."""
    do = _actions()
    raise typer.Exit(0 if do.apply(files, do.Where(bootstrap, client_config, quotas_topic), prune, yes) else 1)


@quotas.command()
def drift(
    files: _Files,
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    quotas_topic: _Topic = QUOTAS.name,
    prune: _Prune = False,
) -> None:
    """Say what differs between files and cluster: ends with 1 if something does, with 0 if nothing."""
    do = _actions()
    raise typer.Exit(1 if do.drift(files, do.Where(bootstrap, client_config, quotas_topic), prune) else 0)


@quotas.command()
def export(
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    quotas_topic: _Topic = QUOTAS.name,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """Write all quotas of the cluster as a file for plan, apply and drift."""
    do = _actions()
    raise typer.Exit(0 if do.export(do.Where(bootstrap, client_config, quotas_topic), output) else 1)


@quotas.command()
def import_properties(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A broker's server.properties.")],
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    quotas_topic: _Topic = QUOTAS.name,
    yes: _Yes = False,
) -> None:
    """Take over the cluster-wide quotas that earlier versions kept in brokers' properties."""
    do = _actions()
    raise typer.Exit(0 if do.import_properties(file, do.Where(bootstrap, client_config, quotas_topic), yes) else 1)


def _actions() -> ModuleType:
    """The commands' work. It needs the libraries of the extra ``quotas``, which a broker's environment may lack."""
    try:
        from quotahost.cli.quotas import actions
    except ImportError as error:
        missing = f"{error.name or error} is missing"
        raise _Missing(f"{missing}; install what this needs: pip install 'quotahost[quotas]'") from None
    return actions
