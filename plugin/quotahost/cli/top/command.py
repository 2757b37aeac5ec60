"""``quotahost top``: the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from quotahost.cli.console import console, lines_of, parsed
from quotahost.cli.doctor.client_file import read_client_config
from quotahost.cli.explain.command import show as show_client
from quotahost.cli.explain.query import ask
from quotahost.cli.explain.query import named as broker_named
from quotahost.cli.explain.volume.command import volume as show_volume
from quotahost.cli.explain.volume.command import volume_names
from quotahost.cli.top.attached import MOST, Attached
from quotahost.cli.top.cluster import Cluster, several
from quotahost.cli.top.drawing import whole
from quotahost.cli.top.live import watch
from quotahost.cli.top.merged import ClusterLook, ClusterUse
from quotahost.cli.top.order import Choice, Order
from quotahost.cli.top.screen import Answer, Question
from quotahost.model import QuotaType
from quotahost.model.look import Look
from quotahost.records.topics import LOOKS, WATCH
from quotahost.units.parse import parse_duration

_BETWEEN = 2.0  # seconds between the two looks at a volume


def top(
    pid: Annotated[int | None, typer.Option(help="Process id of the broker.")] = None,
    broker_id: Annotated[int | None, typer.Option(help="Its node.id.")] = None,
    sort: Annotated[Order, typer.Option(help="What comes first.")] = Order.RATE,
    type: Annotated[QuotaType | None, typer.Option(help="Only this quota type.", case_sensitive=False)] = None,
    filter: Annotated[
        str, typer.Option(metavar="TEXT", help="Only rows with this text in user, client-id, or what binds.")
    ] = "",
    held: Annotated[bool, typer.Option("--held", help="Only clients that are held back.")] = False,
    interval: Annotated[str, typer.Option(help="Time between two looks.")] = "2s",
    most: Annotated[int, typer.Option(min=1, help="Rows of one look; those held back come first.")] = MOST,
    bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="A broker of a cluster: show all of its brokers instead.")
    ] = None,
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            "--command-config",
            metavar="FILE",
            help="How to connect to it, in the names of librdkafka or of Kafka's Java client; without, as anybody can.",
        ),
    ] = None,
    watch_topic: Annotated[str, typer.Option(metavar="TOPIC", help="The brokers' watch.topic.")] = WATCH.name,
    looks_topic: Annotated[str, typer.Option(metavar="TOPIC", help="The brokers' looks.topic.")] = LOOKS.name,
    once: Annotated[bool, typer.Option("--once", help="Print one look and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one look as JSON and end.")] = False,
) -> None:
    """Show live who uses what of a broker on this machine, or of a cluster, who is held back, and by what.

    The brokers of a cluster answer if they run the task publish-usage. Without a terminal it prints one look. Ends with
    2 if no broker answered.
    """
    choice = Choice(sort, type, filter, held)
    seconds = parsed("--interval", interval, parse_duration).total_seconds()
    with ExitStack() as stack:
        look: Callable[[], Look]
        answers: Callable[[Question], Answer]
        if bootstrap is None:
            which = broker_named(pid, broker_id)
            look, answers = stack.enter_context(Attached(which, most)).look, partial(answer, which=which)
        elif (pid, broker_id) != (None, None):
            raise typer.BadParameter("--bootstrap is about all brokers: leave --pid and --broker-id out")
        else:
            given = {} if client_config is None else read_client_config(client_config)
            cluster = Cluster({**given, "bootstrap.servers": bootstrap}, watch_topic, looks_topic)
            look, answers = stack.enter_context(cluster).look, cluster.answer
        first = look()
        if as_json:
            typer.echo(json.dumps(values(first, choice), indent=2))
        elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            screen = console()
            screen.print(whole(first, choice, screen.width))
        else:
            watch(look, choice, seconds, answers)


def values(look: Look, choice: Choice) -> dict[str, Any]:
    """A look for programs: rates in the type's unit, shares from 0 on, null where there is no quota or limit."""
    rows = [
        {
            "user": use.user,
            "client_id": use.client_id,
            "scope": use.scope,
            "type": str(use.quota_type),
            "rate": use.rate,
            "quota": use.quota,
            "limit": use.limit,
            "share": use.share,
            "delay_ms": use.delay_ms,
            "bound_by": use.bound.value,
            "shadow": use.shadow,
            "idle_seconds": use.idle,
            **({"brokers": list(use.brokers)} if isinstance(use, ClusterUse) else {}),
        }
        for use in choice.rows(look.uses)
    ]
    return {
        **(_brokers(look) if isinstance(look, ClusterLook) else {"broker": look.where}),
        "state": str(look.state),
        "factor": look.factor,
        "limit_factor": look.limit_factor,
        "cause": look.cause,
        "fence": look.fence,
        "affected_topics": look.affected,
        "clients": look.clients,
        "clients_max": look.clients_max,
        "left_out": look.left_out,
        "rows": rows,
    }


def _brokers(look: ClusterLook) -> dict[str, Any]:
    """What the brokers of a cluster differ in."""
    by_broker = {
        broker: {
            "state": str(each.state),
            "factor": each.factor,
            "cause": each.cause,
            "fence": each.fence,
            "volumes": [asdict(volume) for volume in each.volumes],
        }
        for broker, each in look.looks.items()
    }
    return {"brokers": by_broker, "silent": list(look.silent)}


def answer(question: Question, which: str) -> Answer:
    """What ``quotahost explain`` says of it.

    Raises:
        Unanswered: no broker answered.
    """
    use = question.client
    if use is None:
        volumes = () if question.volume else [Question(volume=name) for name in volume_names(which)]
        return Answer(lines_of(partial(show_volume, question.volume, which, _BETWEEN)), volumes)
    if use.scope != "client":
        raise several(use)
    return Answer(lines_of(partial(show_client, ask(use.client, which), use.quota_type)))
