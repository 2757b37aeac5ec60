"""``quotahost explain``: why a client of a running broker goes as fast as it does."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.text import Text

from quotahost.cli.console import console
from quotahost.cli.explain.answer import Told
from quotahost.cli.explain.query import ask
from quotahost.cli.explain.wording import Facts, binds, common, of_type
from quotahost.model import Client, QuotaType

NEWCOMER: Final = 3
_LABEL: Final = 10


def explain(
    client: Annotated[
        str | None,
        typer.Option(metavar="USER/CLIENT", help="Principal name and client-id, split at the last /."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="The principal name, if apart.")] = None,
    client_id: Annotated[str | None, typer.Option(help="The client-id, if apart; it may be empty.")] = None,
    pid: Annotated[int | None, typer.Option(help="Process id of the broker.")] = None,
    broker_id: Annotated[int | None, typer.Option(help="Its node.id.")] = None,
    type: Annotated[
        QuotaType | None, typer.Option(help="Only this quota type.", case_sensitive=False)
    ] = None,
) -> None:
    """Say why a client goes as fast as it does, on a broker that runs on this machine.

    Ends with 0 if the broker knows the client, with 3 if it doesn't (a newcomer), with 2 if no broker answered.
    """
    whom = named(client, user, client_id)
    raise typer.Exit(show(ask(whom, pid, broker_id), type))


def named(client: str | None, user: str | None, client_id: str | None) -> Client:
    """The client, from ``USER/CLIENT`` or from both apart.

    A principal name may hold slashes (``CN=a/b``), as a client-id may; the last one divides.

    Raises:
        typer.BadParameter: it isn't given in one of the two ways.
    """
    if client is None and user is not None and client_id is not None:
        return Client(user, client_id)
    if client is None or user is not None or client_id is not None:
        raise typer.BadParameter("give --client USER/CLIENT, or both --user and --client-id")
    name, slash, rest = client.rpartition("/")
    if not slash or not name:
        raise typer.BadParameter("--client is USER/CLIENT; where nobody authenticates USER is ANONYMOUS")
    return Client(name, rest)


def show(told: Told, type: QuotaType | None) -> int:
    """Print the answer for one quota type, or for all; the exit code."""
    held = [each for each in told.held if type in (None, each.type)]
    _show("", common(told))
    for each in held:
        _show(str(each.type), of_type(told, each))
    console().print(Text(f"\n{binds(told, held)}.", style="bold"), soft_wrap=True)
    return NEWCOMER if any(each.newcomer for each in held) else 0


def _show(title: str, facts: Facts) -> None:
    screen = console()
    if title:
        screen.print(Text(f"\n{title}", style="bold"))
    for label, value in facts:
        screen.print(Text.assemble((f"  {label:<{_LABEL}}", "dim"), value), soft_wrap=True)
