"""``quotahost top``: who uses what right now, who is held back, and by what.

1. A look comes from one broker of this machine, by its socket (:class:`Attached`), or from all brokers of a cluster, by
   the records that they publish for those who watch (``cluster``).
2. ``rows`` chooses and sorts, ``table`` draws; without a terminal, that is all.
3. In a terminal ``live`` looks again and again and reads keys; ``screen`` is what is shown after each of them. A row or
   a volume that the user opens is a question, which :func:`answer` or the cluster answers.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from quotahost.broker.host.broker_status import parse
from quotahost.cli.console import console, lines_of, say
from quotahost.cli.explain.broker_socket import BrokerSocket, Unanswered, connect
from quotahost.cli.explain.broker_socket import named as broker_named
from quotahost.cli.explain.explain import add_broker, explain_client, quota_type, seconds
from quotahost.cli.top.rows import Choice, ClusterLook, ClusterUse, Order, several
from quotahost.cli.top.screen import Answer, Question
from quotahost.cli.top.table import whole
from quotahost.model import QuotaType
from quotahost.model.use import Look
from quotahost.records.topics import LOOKS, WATCH

MOST: Final = 1_000  # scopes of one look
_BETWEEN: Final = 2.0  # seconds between the two looks at a volume


def parser() -> ArgumentParser:
    """Its options."""
    made = ArgumentParser(
        "quotahost top",
        description="Show live who uses what of a broker on this machine, or of a cluster, who is held back, and by "
        "what. The brokers of a cluster answer if they run the task publish-usage. Without a terminal it prints one "
        "look. Ends with 2 if no broker answered.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add_broker(made)
    add("--sort", type=Order, default=Order.RATE, metavar="ORDER", help=f"what comes first: {', '.join(Order)} (rate)")
    add("--type", type=quota_type, metavar="TYPE", help=f"only this quota type: {', '.join(QuotaType)}")
    add("--filter", default="", metavar="TEXT", help="only rows with this text in user, client-id, or what binds")
    add("--held", action="store_true", help="only clients that are held back")
    add("--interval", default="2s", help="time between two looks (2s)")
    add("--most", type=_rows, default=MOST, help=f"rows of one look; those held back come first ({MOST})")
    add("--bootstrap", metavar="HOST:PORT", help="a broker of a cluster: show all of its brokers instead")
    add(
        "--client-config", "--command-config", type=Path, metavar="FILE",
        help="how to connect to it, in the names of librdkafka or of Kafka's Java client; without, as anybody can",
    )  # fmt: skip
    add("--watch-topic", default=WATCH.name, metavar="TOPIC", help=f"{WATCH.name} with the brokers' topics.prefix")
    add("--looks-topic", default=LOOKS.name, metavar="TOPIC", help=f"{LOOKS.name} with the brokers' topics.prefix")
    add("--once", action="store_true", help="print one look and end")
    add("--json", action="store_true", help="print one look as JSON and end")
    return made


def _rows(text: str) -> int:
    if (rows := int(text)) < 1:
        raise ArgumentTypeError("at least 1")
    return rows


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit code."""
    made = parser()
    given = made.parse_args(arguments)
    choice = Choice(given.sort, given.type, given.filter, given.held)
    interval = seconds(made, given.interval)
    with ExitStack() as stack:
        look: Callable[[], Look]
        answers: Callable[[Question], Answer]
        if given.bootstrap is None:
            which = broker_named(given.pid, given.broker_id)
            look, answers = stack.enter_context(Attached(which, given.most)).look, partial(answer, which=which)
        elif (given.pid, given.broker_id) != (None, None):
            made.error("--bootstrap is about all brokers: leave --pid and --broker-id out")
        else:
            # They need Kafka's client.
            from quotahost.cli.property_files import read_client_config
            from quotahost.cli.top.cluster import Cluster

            config = read_client_config(given.client_config) | {"bootstrap.servers": given.bootstrap}
            cluster = stack.enter_context(Cluster(config, given.watch_topic, given.looks_topic))
            look, answers = cluster.look, cluster.answer
        first = look()
        if given.json:
            say(json.dumps(values(first, choice), indent=2))
        elif given.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            screen = console()
            screen.print(whole(first, choice, screen.width))
        else:
            from quotahost.cli.top.live import watch

            watch(look, choice, interval, answers)
    return 0


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
            "address": use.address,
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
            "state": str(of_broker.state),
            "factor": of_broker.factor,
            "cause": of_broker.cause,
            "fence": of_broker.fence,
            "volumes": [asdict(volume) for volume in of_broker.volumes],
        }
        for broker, of_broker in look.looks.items()
    }
    return {"brokers": by_broker, "silent": list(look.silent)}


# ---- one broker of this machine --------------------------------------------------------------------------------


class Attached:
    """Looks at a broker again and again by one connection. Use it in a ``with`` block.

    A broker that has been restarted is found again.
    """

    def __init__(self, which: str = "", most: int = MOST) -> None:
        """Look at a broker (``broker_socket.named``), at so many rows at most.

        Whether there is such a broker shows at the first look.
        """
        self._which, self._most = which, most
        self._broker: BrokerSocket | None = None

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def look(self) -> Look:
        """What the broker says now.

        Raises:
            Unanswered: there is no such broker, it has ended, or can't be asked.
        """
        if self._broker is not None:
            # It ends a connection that has been idle for a minute, and there may be another broker by now.
            with suppress(Unanswered):
                return self._look(self._broker)
        self._broker = connect(self._which)
        return self._look(self._broker)

    def _look(self, broker: BrokerSocket) -> Look:
        try:
            with broker.understood():
                # One more tells whether there are more.
                return parse(broker.ask("uses", str(self._most + 1))).first(self._most)
        except Unanswered:
            self._leave()
            raise

    def _leave(self) -> None:
        if self._broker is not None:
            self._broker.close()
            self._broker = None


def answer(question: Question, which: str) -> Answer:
    """What ``quotahost explain`` says of it.

    Raises:
        Unanswered: no broker answered.
    """
    from quotahost.cli.explain.volume import explain_volume, volume_names  # only here: one look needs none of it

    use = question.client
    if use is None:
        volumes = () if question.volume else [Question(volume=name) for name in volume_names(which)]
        return Answer(lines_of(partial(explain_volume, question.volume, which, _BETWEEN)), volumes)
    if use.scope != "client":
        raise several(use)
    return Answer(lines_of(partial(explain_client, use.client, which, use.quota_type)))
