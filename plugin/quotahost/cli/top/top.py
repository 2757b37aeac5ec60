"""``quotahost top`` reads its options, and shows looks at one broker of this machine or at all brokers of a cluster.

1. A look comes from one broker of this machine, by its admin socket (:class:`Attached`), or from all brokers of a
   cluster, by the records that brokers publish for watchers (``cluster``).
2. ``rows`` filters, sorts and draws the rows. Without a terminal that draws, with ``--once`` or ``--json``, it ends.
3. In a terminal ``live`` looks again and again, and reads keys. If the user opens a row or a volume, ``live`` asks a
   question, which :meth:`Attached.answer` or the cluster answers.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from quotahost.broker.host import broker_status
from quotahost.cli.console import console, json_text, lines_of, say
from quotahost.cli.explain.broker_socket import connect
from quotahost.cli.explain.explain import add_common, explain_client, valued
from quotahost.cli.top.live import Panel, Question, Watched, watch
from quotahost.cli.top.rows import Choice, Order, require_one_client, values, whole
from quotahost.model import Look, QuotaType
from quotahost.records.topics import LOOKS, WATCH
from quotahost.units.parse import MAX_COUNT, parse_count, parse_duration

HELP: Final = "Show live who uses what of a broker of this machine, or of a cluster, who is held back, and by what."
MOST: Final = 1_000  # scopes of one look
_BETWEEN: Final = 2.0  # seconds between the two looks at a volume


def parser() -> ArgumentParser:
    of_a_cluster = "The brokers of a cluster answer if they run the task publish-usage."
    ends = "Without a terminal it prints one look. Ends with 2 if no broker answered."
    made = ArgumentParser("quotahost top", description=f"{HELP} {of_a_cluster} {ends}", allow_abbrev=False)
    add = made.add_argument
    add_common(made)
    orders = [*map(str, Order)]
    comes_first = f"what comes first: {', '.join(orders)} (rate)"
    add("--sort", type=str.lower, choices=orders, default="rate", metavar="ORDER", help=comes_first)
    wanted = "only rows with this text in user, client-id, address or what binds"
    add("--filter", default="", metavar="TEXT", help=wanted)
    add("--held", action="store_true", help="only clients that are held back")
    interval = "time between two looks (2s); with --bootstrap 30s at most"
    add("--interval", type=valued(parse_duration), default="2s", help=interval)
    add("--most", type=valued(parse_count), help=f"rows of one look at one broker; those held back come first ({MOST})")
    add("--bootstrap", metavar="HOST:PORT", help="a broker of a cluster: show all of its brokers instead")
    add(
        "--client-config", "--command-config", type=Path, metavar="FILE",
        help="connection properties, as librdkafka or the Java client names them (default: plaintext, no login)",
    )  # fmt: skip
    add("--watch-topic", default=WATCH.name, metavar="TOPIC", help=f"{WATCH.name} with the brokers' topics.prefix")
    add("--looks-topic", default=LOOKS.name, metavar="TOPIC", help=f"{LOOKS.name} with the brokers' topics.prefix")
    add("--once", action="store_true", help="print one look and end")
    add("--json", action="store_true", help="print one look as JSON and end")
    return made


def main(arguments: Sequence[str]) -> int:
    made = parser()
    given = made.parse_args(arguments)
    wanted_type, interval = given.type and QuotaType(given.type), given.interval.total_seconds()
    choice = Choice(Order(given.sort), wanted_type, given.filter, given.held)
    of_cluster = given.client_config, given.watch_topic, given.looks_topic
    if given.bootstrap is None and of_cluster != (None, WATCH.name, LOOKS.name):
        made.error("--client-config, --watch-topic and --looks-topic need --bootstrap")
    if given.bootstrap is not None and (given.which, given.most) != ("", None):
        made.error("--bootstrap can't be combined with --pid, --broker-id or --most")
    with ExitStack() as stack:
        watched: Watched = Attached(given.which, given.most or MOST)
        if given.bootstrap is not None:
            # These modules are imported only here, because they need Kafka's client, which takes long to import.
            from quotahost.cli.property_files import read_client_config
            from quotahost.cli.top.cluster import Cluster
            from quotahost.records.watch import MOST_SECONDS

            # If the interval were longer, the watch would expire, and the next look would show old answers of brokers.
            interval = min(interval, MOST_SECONDS)
            config = read_client_config(given.client_config) | {"bootstrap.servers": given.bootstrap}
            watched = stack.enter_context(Cluster(config, given.watch_topic, given.looks_topic))
        look, screen = watched.look(), console()
        if given.json:
            say(json_text(values(look, choice)))
        elif given.once or screen.is_dumb_terminal or not (sys.stdin.isatty() and sys.stdout.isatty()):
            screen.print(whole(look, choice, screen))
        else:
            watch(watched, look, choice, interval)
    return 0


class Attached:
    """Looks at a broker (``broker_socket.connect``). Each look finds the broker again, as it may have restarted."""

    def __init__(self, which: str = "", most: int = MOST) -> None:
        self._which, self._most = which, most

    def look(self) -> Look:
        """Look at the broker now. Raises Unusable if there is no such broker, or if it doesn't answer."""
        with connect(self._which) as ask:
            return broker_status.look(ask, min(self._most, MAX_COUNT - 1))

    def answer(self, question: Question) -> Panel:
        """The text of ``quotahost explain`` about a client or a volume."""
        if use := question.client:
            require_one_client(use)
            return Panel(lines_of(partial(explain_client, use.client, self._which, use.quota_type)))
        from quotahost.cli.explain.volume import explain_volume  # only here: a look needs none of it

        names: list[str] = []
        explain = partial(explain_volume, question.volume, self._which, _BETWEEN)
        lines = lines_of(lambda screen: names.extend(explain(screen)))
        return Panel(lines, () if question.volume else [Question(volume=name) for name in names])
