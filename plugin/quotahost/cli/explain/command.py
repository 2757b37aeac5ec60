"""``quotahost explain``: asks a running broker about a client and prints its answer."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from quotahost.cli.console import console, parsed, shown
from quotahost.cli.explain.answer import Answer
from quotahost.cli.explain.query import ask
from quotahost.cli.explain.query import named as broker_named
from quotahost.cli.explain.volume.command import volume as explain_volume
from quotahost.cli.explain.wording import Facts, common_facts, limited_by, quota_facts
from quotahost.model import Client, QuotaType
from quotahost.units.parse import parse_duration

NEWCOMER: Final = 3  # the exit code
_LABEL: Final = 10  # columns


def explain(
    client: Annotated[
        str | None, typer.Option(metavar="USER/CLIENT", help="Principal name and client-id, split at the last /.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The principal name, if given apart.")] = None,
    client_id: Annotated[str | None, typer.Option(help="The client-id, if given apart; it may be empty.")] = None,
    pid: Annotated[int | None, typer.Option(help="Process id of the broker.")] = None,
    broker_id: Annotated[int | None, typer.Option(help="Its node.id.")] = None,
    type: Annotated[QuotaType | None, typer.Option(help="Only this quota type.", case_sensitive=False)] = None,
    volume: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME]", help="Instead of a client: what fills this volume; without a name, which there are."
        ),
    ] = None,
    interval: Annotated[str, typer.Option(help="Time between the two looks that measure a volume's growth.")] = "5s",
) -> None:
    """Say why a client goes as fast as it does, or what fills a volume, on a broker that runs on this machine.

    Ends with 0 if the broker knows the client, with 3 if it doesn't (a newcomer), with 2 if no broker answered.
    """
    which = broker_named(pid, broker_id)
    if volume is None:
        raise typer.Exit(show(ask(named(client, user, client_id), which), type))
    if (client, user, client_id, type) != (None, None, None, None):
        raise typer.BadParameter("--volume is about no client: leave --client, --user, --client-id and --type out")
    raise typer.Exit(explain_volume(volume, which, parsed("--interval", interval, parse_duration).total_seconds()))


class Explain(TyperCommand):
    """The command, which takes ``--volume`` with and without a name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give ``--volume`` an empty name where the next word is an option, or there is none."""
        # typer has no option whose value may be left out.
        following = [*args[1:], "--"]
        filled = (
            [
                [one, ""] if one == "--volume" and after.startswith("--") else [one]
                for one, after in zip(args, following, strict=True)
            ]
            if args
            else []
        )
        return super().parse_args(ctx, [word for words in filled for word in words])


def named(client: str | None, user: str | None, client_id: str | None) -> Client:
    """The client, from ``USER/CLIENT`` or from its two names.

    Both names may contain slashes (``CN=a/b``); ``USER/CLIENT`` is split at the last one.

    Raises:
        typer.BadParameter: it is given in neither way, or in both.
    """
    if client is None and user is not None and client_id is not None:
        return Client(user, client_id)
    if client is None or user is not None or client_id is not None:
        raise typer.BadParameter("give --client USER/CLIENT, or both --user and --client-id")
    # At the last slash: a principal may be a distinguished name that contains some.
    name, slash, rest = client.rpartition("/")
    if not slash or not name:
        raise typer.BadParameter("--client is USER/CLIENT; where nobody authenticates USER is ANONYMOUS")
    return Client(name, rest)


def show(answer: Answer, type: QuotaType | None, screen: Console | None = None) -> int:
    """Print the answer for one quota type, or for all of them if it is None; the exit code."""
    screen = screen or console()
    quotas = [quota for quota in answer.quotas if type in (None, quota.type)]
    _show(screen, "", common_facts(answer))
    for quota in quotas:
        _show(screen, str(quota.type), quota_facts(answer, quota))
    screen.print(Text(f"\n{shown(limited_by(answer, quotas))}.", style="bold"), soft_wrap=True)
    return NEWCOMER if any(quota.is_newcomer for quota in quotas) else 0


def _show(screen: Console, title: str, facts: Facts) -> None:
    if title:
        screen.print(Text(f"\n{title}", style="bold"))
    for label, value in facts:
        screen.print(Text.assemble((f"  {label:<{_LABEL}}", "dim"), shown(value)), soft_wrap=True)
