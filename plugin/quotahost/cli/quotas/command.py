"""``quotahost quotas plan|apply|drift|export``: their options and exit codes.

Each ends with 2 if a file or the cluster can't be used. ``drift`` ends with 1 if something differs, ``apply`` if
something couldn't be changed.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeAlias

import typer

from quotahost.declared.problems import DeclarationError

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
_Prune: TypeAlias = Annotated[bool, typer.Option("--prune", help="Remove what no file names; otherwise it stays.")]


@quotas.command()
def plan(files: _Files, bootstrap: _Bootstrap, client_config: _Config = None, prune: _Prune = False) -> None:
    """Show what apply would change. It changes nothing, and ends with 0 whatever it finds."""
    _actions().plan(files, bootstrap, client_config, prune)


@quotas.command()
def apply(
    files: _Files,
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    prune: _Prune = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> None:
    """Make the cluster agree with the files. It shows what it would change, and asks first."""
    raise typer.Exit(0 if _actions().apply(files, bootstrap, client_config, prune, yes) else 1)


@quotas.command()
def drift(files: _Files, bootstrap: _Bootstrap, client_config: _Config = None, prune: _Prune = False) -> None:
    """Say what differs between files and cluster: ends with 1 if something does, with 0 if nothing."""
    raise typer.Exit(1 if _actions().drift(files, bootstrap, client_config, prune) else 0)


@quotas.command()
def export(
    bootstrap: _Bootstrap,
    client_config: _Config = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """Write all quotas of the cluster as a file for plan, apply and drift."""
    _actions().export(bootstrap, client_config, output)


def _actions() -> ModuleType:
    """The commands' work. It needs the libraries of the extra ``quotas``, which a broker's environment may lack."""
    try:
        from quotahost.cli.quotas import actions
    except ImportError as error:
        missing = f"{error.name or error} is missing"
        raise DeclarationError(f"{missing}; install what this needs: pip install 'quotahost[quotas]'") from None
    return actions
