"""Measures how the full disk of one of six brokers affects clients whose topics have no replica on it.

Each of 60 topics has a replica on two neighbouring brokers. Twelve paced producers write to five topics of one leader
each, so four of them write to topics with a replica on broker FULL. Its disk is a small file system, which the bench
fills to 60 % of the way from soft to hard, then up to the hard limit, and then empties. The contenders are
``factor.scope=topics``, ``factor.scope=cluster``, which is proposal 035, and Strimzi's plugin.
"""

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from bench.disks.brokers import (
    BOOTSTRAP,
    MEGA,
    QUICK_DELETION,
    Ballast,
    check_alive,
    factor,
    is_stopped,
    strimzi_properties,
)
from bench.disks.load import PacedProducer
from bench.jvm import strimzi_jars
from bench.markdown import table
from harness.kafka.admin import place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, plugin_properties, prefixed
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually

BROKERS: Final = 6
FULL: Final = 3  # the broker whose disk fills
TOPICS: Final = 60
EACH: Final = 5  # topics of each client
QUOTA: Final = 250_000  # bytes/s of each client on each broker
RATE: Final = 200_000.0  # bytes/s that each client offers
SOFT: Final = 200 * MEGA  # bytes used of the full disk
HARD: Final = 300 * MEGA
CAPACITY: Final = 400 * MEGA
NEVER: Final = 10**15  # bytes used of the other disks
SLOWED: Final = 0.6  # share of the way from soft to hard: the policy `limits` gives the factor 0.4
WARM_UP: Final = 10.0  # seconds, like the next two
SETTLED: Final = 5.0  # the wait after each change of the disk
WATCHED: Final = 25.0  # the time of watching in each state
SMALL: Final = {"log.cleaner.dedupe.buffer.size": "8388608", "num.io.threads": "4", "quota.window.num": "2"}


class Contender(StrEnum):
    """The plugin of all brokers, by its name in the table."""

    TOPICS = "quotahost, factor.scope=topics"
    CLUSTER = "quotahost, factor.scope=cluster"
    STRIMZI = "Strimzi's plugin"


class SpreadProducer(PacedProducer):
    """Writes to several topics in turn, at one total rate."""

    def __init__(self, config: dict[str, Any], topics: Sequence[str], rate: float) -> None:
        """``rate`` is in bytes/s."""
        super().__init__(config, topics[0], rate, 5_000)
        self._topics: Final = itertools.cycle(topics)

    def _produce(self, client: Producer) -> None:
        self.topic = next(self._topics)
        super()._produce(client)


@dataclass(frozen=True)
class Found:
    """The results of one contender."""

    rates: list[list[float]]  # bytes/s of each client before, in THROTTLE, in PAUSE and after the PAUSE
    until_stop: int  # growth of the topics on the full disk between its limit and the stop of all brokers, in bytes
    after_stop: int  # their growth in the WATCHED seconds after the stop, in bytes
    failed: int  # records that were not delivered


@contextmanager
def _cluster(contender: Contender) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="quotahost-bench-") as folder, ExitStack() as stack:
        place = Path(folder) / f"node-{FULL}"
        if not stack.enter_context(own_file_system(place, str(CAPACITY))):
            raise RuntimeError("no small file system can be mounted here: run this bench as root")
        classpath = [JAR, *map(Path, strimzi_jars())]
        cluster = Cluster(Path(folder), BROKERS, classpath=classpath, heap="256m")
        for node in cluster.brokers:
            node.properties = SMALL | QUICK_DELETION | _properties(contender, node)
        with cluster:
            yield cluster


def _properties(contender: Contender, node: KafkaNode) -> dict[str, str]:
    if contender is Contender.STRIMZI:
        # The two clients of a leader share the quota.
        more = {"static.produce": str(2 * QUOTA), BOOTSTRAP: node.bootstrap}
        return prefixed(strimzi_properties(CAPACITY - HARD) | more)
    own = {
        "factor.source": "snapshots",
        "policy": "limits",
        "factor.scope": contender.rpartition("=")[2],
        "fence.authorizer": "none",
    }
    # Every broker publishes limits: otherwise a broker that reads the snapshot would apply the limits of the reader.
    soft, hard = (SOFT, HARD) if node.node_id == FULL else (NEVER, NEVER)
    limits = {"static.storage.soft": str(soft), "static.storage.hard": str(hard)}
    return plugin_properties(own | limits | {"static.produce": str(QUOTA), "static.scope": "client"}) | FENCE


def run(contender: Contender) -> Found:
    """Starts six brokers, and takes one broker's disk through OPEN, THROTTLE, PAUSE and back."""
    with _cluster(contender) as cluster, ExitStack() as stack:
        eventually(lambda: not any(is_stopped(node) for node in cluster.brokers), what="all brokers OPEN")
        clients = _clients(cluster, stack)
        ballast = stack.enter_context(Ballast(cluster.brokers[FULL - 1].directory / "ballast", 0))
        time.sleep(WARM_UP)
        rates = [_watch(cluster, clients)]
        ballast.to(SOFT + SLOWED * (HARD - SOFT))
        if contender is not Contender.STRIMZI:  # Strimzi's plugin has no soft limit
            eventually(lambda: all(factor(node) < 1 for node in cluster.brokers), what="a factor below 1")
        time.sleep(SETTLED)
        rates.append(_watch(cluster, clients))
        full = _on_full_disk(cluster)
        ballast.to(HARD + MEGA)
        eventually(lambda: all(is_stopped(node) for node in cluster.brokers), what="a full stop")
        stopped = _on_full_disk(cluster)
        rates.append(_watch(cluster, clients))
        after = _on_full_disk(cluster)
        ballast.to(0)
        eventually(lambda: not any(is_stopped(node) for node in cluster.brokers), what="all brokers OPEN")
        time.sleep(SETTLED)
        rates.append(_watch(cluster, clients))
        failed = sum(len(client.errors) for client in clients)
        return Found(rates, stopped - full, after - stopped, failed)


def _clients(cluster: Cluster, stack: ExitStack) -> list[SpreadProducer]:
    """Creates the topics, and starts the clients, those of broker 1 first."""
    leaders = {f"t-{number}": number % BROKERS + 1 for number in range(TOPICS)}
    place_topics(cluster, {topic: [leader, leader % BROKERS + 1] for topic, leader in leaders.items()})
    clients = []
    for broker in range(1, BROKERS + 1):
        topics = [topic for topic, leader in leaders.items() if leader == broker]
        for number, some in enumerate((topics[:EACH], topics[EACH:])):
            config = cluster.client_config(client_id=f"client-{broker}-{number}")
            clients.append(stack.enter_context(SpreadProducer(config, some, RATE)))
    return clients


def _watch(cluster: Cluster, clients: list[SpreadProducer]) -> list[float]:
    """Returns the bytes/s of each client in the next WATCHED seconds."""
    began = time.monotonic()
    time.sleep(WATCHED)
    check_alive(*cluster.brokers)
    return [client.meter.rate(began, began + WATCHED) for client in clients]


def _on_full_disk(cluster: Cluster) -> int:
    """Returns the bytes of the clients' topics on the full disk."""
    segments = cluster.brokers[FULL - 1].data_dirs[0].glob("t-*/*.log")
    return sum(segment.stat().st_size for segment in segments)


def report(found: dict[Contender, Found]) -> str:
    """Returns a Markdown table."""
    heads = ["mean (least) share of the rate offered", "clients of topics", "before", "THROTTLE", "PAUSE", "after"]
    heads += ["kB more on the full disk until the stop", f"bytes in the {WATCHED:.0f} s after", "records lost"]
    return table(heads, [row for contender, each in found.items() for row in _rows(contender, each)])


def _rows(contender: Contender, found: Found) -> Iterator[list[str]]:
    bytes_more = [f"{found.until_stop / 1e3:,.0f}", f"{found.after_stop:,}", str(found.failed)]
    for affected, name in ((False, "elsewhere"), (True, "on the full disk")):
        shares = [_shares(found, state, affected) for state in range(4)]
        cells = [f"{statistics.mean(each):.2f} ({min(each):.2f})" for each in shares]
        yield [contender, name, *cells, *(bytes_more if affected else [""] * len(bytes_more))]


def _shares(found: Found, state: int, affected: bool) -> list[float]:
    """Returns each client's rate in a state, as a share of its offered rate."""
    leaders = [broker for broker in range(1, BROKERS + 1) for _ in range(TOPICS // BROKERS // EACH)]
    pairs = zip(leaders, found.rates[state], strict=True)
    return [rate / RATE for leader, rate in pairs if (FULL in (leader, leader % BROKERS + 1)) is affected]


def main() -> str:
    """Measures all contenders; returns the Markdown table."""
    return report({contender: run(contender) for contender in Contender})
