"""Measures what a client gains and costs by claiming a new client-id with each request, beside a stock broker.

Both brokers have the same rates: the stock one by Kafka's own client quotas, the other by ``static.produce``. Rotating
clients are ANONYMOUS on one connection; the other client, whose delays are measured meanwhile, is a user of its own.
"""

import itertools
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from bench.markdown import table
from harness.clients.raw import PRODUCE, RawClient, introduce_clients, produce_body, record_batch
from harness.java.jdk import program
from harness.kafka.admin import DEFAULT, create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, plugin_properties
from harness.system.background import Background

RATE: Final = 1_000_000  # bytes/s, for the first figure
HIGH: Final = 10_000_000_000  # bytes/s, for the others: nothing is throttled, and everything is measured
SECONDS: Final = 30.0
NAMES: Final = 100_000
LONG_NAMES: Final = 5_000  # names of 32,000 characters; 20,000 names end a stock broker of 2 GB
HEAP: Final = "2g"
PATIENCE: Final = 120.0  # seconds within which a broker should serve all names of a kind
USERS: Final = {"alice": "secret"}


@contextmanager
def running(quotahost: bool, rate: int, scope: str) -> Iterator[KafkaNode]:
    """Runs a broker with a topic, whose users or clients may produce at this rate."""
    settings = {"supplier": "static", "static.produce": str(rate), "static.scope": scope}
    properties = plugin_properties(settings) if quotahost else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(Path(folder), classpath=[JAR], properties=properties, users=USERS, heap=HEAP, jvm_options=()) as node,
    ):
        create_topic(node, "t")
        if not quotahost:
            set_quota(node, {"producer_byte_rate": rate}, DEFAULT, DEFAULT if scope == "client" else None)
            time.sleep(1)
        yield node


def bytes_got(quotahost: bool, scope: str) -> float:
    """Returns the bytes that one connection gets in SECONDS with a new client-id for each request."""
    batch = record_batch(100_000)
    with running(quotahost, RATE, scope) as broker, RawClient(broker, "first") as client:
        client.produce("t", batch)
        time.sleep(1)
        sent, end = 0, time.monotonic() + SECONDS
        for number in itertools.count():
            client.rename(f"rotating-{number}")
            try:
                client.ask(PRODUCE, produce_body("t", batch), timeout=max(0.01, end - time.monotonic()))
            except TimeoutError:
                break
            sent += len(batch)
    return sent


def live_heap(broker: KafkaNode) -> float:
    """Returns the MB that are reachable in the broker's heap after a full collection."""
    command = [program("jcmd"), str(broker.pid), "GC.class_histogram"]
    total = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()[-1]
    return int(total.split()[2]) / 1e6


def in_time(names: Iterator[str]) -> Iterator[str]:
    """Yields the names; raises TimeoutError if they are not taken within PATIENCE."""
    end = time.monotonic() + PATIENCE
    for name in names:
        if time.monotonic() > end:
            raise TimeoutError(f"the broker has not served the names within {PATIENCE:g} s")
        yield name


KINDS: Final[dict[str, Callable[[], Iterator[str]]]] = {
    f"{NAMES:,} of 20 characters": lambda: (f"rotating-{number:011}" for number in range(NAMES)),
    # Names of 34 characters with the same hash in Java.
    f"{NAMES:,} of one hash": lambda: itertools.islice(map("".join, itertools.product(("Aa", "BB"), repeat=17)), NAMES),
    f"{LONG_NAMES:,} of 32,000 characters": lambda: (f"{number:032000}" for number in range(LONG_NAMES)),
}


class OtherClient(Background):
    """A client with its own user, which writes a hundred small records a second and notes the delay of each."""

    def __init__(self, broker: KafkaNode) -> None:
        super().__init__()
        self.delays: list[float] = []
        config: dict[str, Any] = broker.client_config("alice", "steady") | {"linger.ms": 0}
        self._producer = Producer(config)

    def _run(self) -> None:
        while not self._stopping.wait(0.01):
            began = time.perf_counter()
            self._producer.produce("t", b"x" * 100, on_delivery=lambda *_, b=began: self._note(b))
            self._producer.poll(0)

    def _note(self, began: float) -> None:
        self.delays.append(time.perf_counter() - began)

    def p99(self) -> float:
        """Ends the client, and returns the p99 in milliseconds."""
        self.stop()
        self._producer.flush(10)
        return 1e3 * statistics.quantiles(self.delays, n=100)[98]


def cost(quotahost: bool, scope: str, names: Callable[[], Iterator[str]]) -> tuple[float, float, float]:
    """Returns the live heap in MB before and after these names, and another client's p99 in ms meanwhile.

    A value is NaN if it can't be measured: a broker whose heap is full of names does not answer.
    """
    body = produce_body("t", record_batch(10))
    before = after = p99 = math.nan
    with running(quotahost, HIGH, scope) as broker:
        introduce_clients(broker, (f"warm-{number % 10}" for number in range(20_000)), PRODUCE, body)
        before, other = live_heap(broker), OtherClient(broker).start()
        try:
            introduce_clients(broker, in_time(names()), PRODUCE, body)
            p99 = other.p99()
            after = live_heap(broker)
        except (OSError, subprocess.TimeoutExpired):
            other.p99()
    return before, after, p99


def main(scope: str) -> str:
    """Returns the figures as Markdown."""
    got, stock = bytes_got(True, scope), bytes_got(False, scope)
    rows = [[f"bytes in {SECONDS:g} s, MB", f"{got / 1e6:.1f}", f"{stock / 1e6:.1f}", f"{got / stock:.2f}"]]
    for kind, names in KINDS.items():
        own, other = cost(True, scope, names), cost(False, scope, names)
        for what, ours, stocks in zip(
            ("live heap before, MB", "live heap, MB", "p99 of another, ms"), own, other, strict=True
        ):
            rows.append([f"{kind}: {what}", f"{ours:.1f}", f"{stocks:.1f}", f"{ours / stocks:.2f}"])
        print(*(" | ".join(row) for row in rows[-3:]), sep="\n", file=sys.stderr)
    heads = [f"a fresh client-id for each request, scope {scope}", "quotahost", "stock", "quotahost / stock"]
    return table(heads, rows)
