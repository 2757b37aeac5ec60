"""Measures what the factor source ``load`` does for a small client on a broker that greedy clients keep busy.

1. The broker has one request handler, and a topic whose batches it compresses again, which takes that handler some ms
   for a batch of 200 kB that cannot be compressed. So the handler is the bottleneck, on any machine.
2. Four greedy clients send as fast as the broker answers. Later a small client sends a hundred records a second.
3. A stock broker without quotas shows how much the greedy clients get: FULL is a quarter of that.
4. The same load then meets static quotas for each client, as shares of FULL, and ``load`` with a quota above FULL.

Batches differ in size. With equal sizes the clients fall into step, and chance decides whether they then send together
or in turn, which determines the small client's p99 under static quotas.

The best static quota is the one with the most bytes for its p99 (Kleinrock's power of a queue: throughput by delay).
"""

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

from bench.markdown import table
from bench.names import USERS, OtherClient
from harness.clients.load import Load
from harness.clients.raw import RawClient, record_batch
from harness.kafka.admin import DEFAULT, create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, plugin_properties

GREEDY: Final = 4
CONNECTIONS: Final = 2  # of each greedy client, with one request at a time
SIZES: Final = range(100_000, 300_001)  # bytes of a batch
BATCHES: Final = 32  # batches of each connection
COSTLY: Final = {"compression.type": "gzip", "compression.gzip.level": "9"}
GRID: Final = (0.25, 0.5, 0.7, 0.85, 1.0)  # shares of FULL
GENEROUS: Final = 2.0  # times FULL: the quota that `load` multiplies
BUSY: Final = {"num.io.threads": "1", "quota.window.num": "2"}  # docs/quotas.md advises two windows for `load`
WARM_UP: Final = 30.0  # seconds; ADR 0029: the factor settles in 5 to 32 s
WATCHED: Final = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of one run: bytes/s of the greedy clients together, and the small client's p99 in ms."""

    rate: float
    p99: float


class Greedy(Load):
    """One connection that sends one batch after the other; a broker that throttles it mutes it."""

    def __init__(self, node: KafkaNode, client_id: str, seed: int) -> None:
        super().__init__("t")
        chance = random.Random(seed)
        self._client = RawClient(node, client_id)
        self._batches = [record_batch(chance.randbytes(chance.choice(SIZES))) for _ in range(BATCHES)]

    def _run(self) -> None:
        with self._client:
            for batch in cycle(self._batches):
                if self._stopping.is_set():
                    return
                self._client.produce(self.topic, batch)
                self.meter.add(len(batch))


@contextmanager
def running(quota: float | None, load: int) -> Iterator[KafkaNode]:
    """Runs a broker whose clients have this quota: Kafka's own, or quotahost's with a target of ``load`` % idle."""
    settings = {"static.produce": f"{quota or 0:.0f}", "static.scope": "client"}
    settings |= {"factor.source": "load", "plugin.load.handlers-idle": str(load)}
    properties = plugin_properties(settings) if load else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(Path(folder), classpath=[JAR], properties=properties | BUSY, users=USERS) as node,
    ):
        create_topic(node, "t", config=COSTLY)
        if quota and not load:
            set_quota(node, {"producer_byte_rate": round(quota)}, DEFAULT, DEFAULT)
        yield node


def measure(quota: float | None, load: int = 0) -> Figures:
    """Measures one run with all clients."""
    names = [f"greedy-{number}" for number in range(GREEDY)] * CONNECTIONS
    with running(quota, load) as node, ExitStack() as clients:
        greedy = [clients.enter_context(Greedy(node, name, seed)) for seed, name in enumerate(names)]
        time.sleep(WARM_UP)
        small, began = OtherClient(node).start(), time.monotonic()
        time.sleep(WATCHED)
        return Figures(sum(client.meter.rate(began, began + WATCHED) for client in greedy), small.p99())


def main() -> str:
    """Returns the figures as Markdown."""
    stock = measure(None)
    full = stock.rate / GREEDY
    static = {f"a static quota of {share:g} FULL": measure(share * full) for share in GRID}
    best = max(static.values(), key=lambda figures: figures.rate / figures.p99)
    by_load = {f"load, target {idle} % idle": measure(GENEROUS * full, load=idle) for idle in (30, 20)}
    runs = {"stock, no quotas": stock, **static, **by_load}
    rows = [
        [name, f"{run.rate / 1e6:.1f}", f"{run.p99:.1f}", f"{run.rate / best.rate:.2f}", f"{run.p99 / best.p99:.2f}"]
        for name, run in runs.items()
    ]
    heads = ["clients' quotas", "MB/s in all", "small client's p99, ms", "MB/s / best static", "p99 / best static"]
    return f"FULL is {full / 1e6:.1f} MB/s.\n\n{table(heads, rows)}"
