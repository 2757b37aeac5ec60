"""The three brokers of the demo's Spark part, their producers and the pipeline, and samples of them.

The brokers read the pipeline's record; while none arrives, the standby source answers. Broker 3 has the disk that
fills: a small file system that a service fills. Where none can be mounted, limits below what is used stand for a full
disk: for the brokers there is no difference. ``spark`` plays the part and shows the samples.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from demo.disk import consumed
from demo.quotas import MEGA
from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, delete_topics, place_topics
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, STATES, plugin_properties
from harness.system.pipeline import PipelineProcess

BROKER: Final = 3
SOFT: Final = 60 * MEGA  # bytes above what is used when the disk begins to fill
HARD: Final = 190 * MEGA
# Bytes/s of the exempt service that fills it; slow, because Spark needs some seconds for each step.
SERVICE: Final = 4 * MEGA


class Disk:
    """Broker 3's disk, which can be filled and freed. ``limits`` are soft and hard, in bytes used; None at first."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.limits: tuple[int, int] | None = None

    def fill(self) -> None:
        """Begin to fill the disk."""

    def on_throttle(self) -> None:
        """All producers have been slowed: fill the disk up to its hard limit."""

    def on_pause(self) -> None:
        """All producers have been stopped: stop filling."""

    def free(self) -> None:
        """Free the space."""

    def close(self) -> None:
        """End the client that fills it, if there is one."""

    def used(self) -> int:
        """Bytes used of the disk."""
        return consumed(self._cluster.brokers[BROKER - 1])

    def limit(self, soft: int, hard: int) -> None:
        """Set the limits of broker 3, in bytes used, as an operator does."""
        self.limits = soft, hard
        changes = {f"{PREFIX}static.storage.soft": str(soft), f"{PREFIX}static.storage.hard": str(hard)}
        alter_broker_config(self._cluster.brokers[0], changes, broker=BROKER)


class FilledDisk(Disk):
    """A file system of its own. An exempt service fills it by writing to a topic; deleting the topic frees it."""

    TOPIC: Final = "filling"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._service = ProducerLoad(cluster.client_config("service", "filler"), self.TOPIC, rate=SERVICE)

    def fill(self) -> None:
        """Set limits above what is used, and start the service, which writes on until all have stopped."""
        used = self.used()
        self.limit(used + SOFT, used + HARD)
        self._service.start()

    def on_pause(self) -> None:
        """Stop the service."""
        self._service.stop()

    def free(self) -> None:
        """Delete the topic."""
        delete_topics(self._cluster, self.TOPIC)

    def close(self) -> None:
        """Stop the service."""
        self._service.stop()


class LoweredLimits(Disk):
    """Limits that move below what is used. For the other brokers that is a disk that has filled."""

    def fill(self) -> None:
        """The used bytes lie in the middle between soft and hard."""
        self.limit(self.used() // 2, self.used() * 3 // 2)

    def on_throttle(self) -> None:
        """The used bytes lie above hard."""
        self.limit(self.used() // 3, self.used() // 2)

    def free(self) -> None:
        """The used bytes lie below soft."""
        self.limit(self.used() * 2, self.used() * 3)


# The factor source that reads the pipeline's record, and its standby, which reads all snapshots.
RECORD_SOURCE, SNAPSHOT_SOURCE = "cluster-volumes", "snapshots"
_BEANS: Final = ("QuotaTable", "Factor", "FactorSource,*", "ClusterRecord")
VALIDITY: Final = "10s"
QUOTA: Final = 1 * MEGA  # bytes/s of each producer
SETTINGS: Final = {
    "factor.source": RECORD_SOURCE,
    "validity": VALIDITY,
    "snapshots.period": "1s",
    "fence.authorizer": "none",
    "static.produce": str(QUOTA),
    "static.scope": "client",
    "static.excluded.principal.name.list": "User:service",
    # The limits of brokers 1 and 2, whose disk is this machine's: so high that it never reaches them.
    "static.storage.soft": str(10**15),
    "static.storage.hard": str(10**15),
}
PIPELINE: Final = {"tick": "1s", "interval": "500ms", "validity": VALIDITY}
BROKER_PROPERTIES: Final = FENCE | {"log.segment.delete.delay.ms": "200"}


@dataclass(frozen=True)
class BrokerSample:
    """One broker at one moment.

    Attributes:
        state: OPEN, THROTTLE or PAUSE.
        factor: the factor in force.
        source: the factor source that answers; empty if none does.
        age: the age of the cluster record in seconds; None if there is none.
        transitions: how often the state has changed.
        rate: bytes/s over the last 2 s of the producer that writes to it.
    """

    state: str
    factor: float
    source: str
    age: float | None
    transitions: float
    rate: float


@dataclass(frozen=True)
class Sample:
    """All brokers by id at one moment, in seconds since the start."""

    at: float
    brokers: dict[int, BrokerSample]

    def all_are(self, state: str) -> bool:
        """Whether every broker is in that state."""
        return all(broker_sample.state == state for broker_sample in self.brokers.values())

    def all_use(self, source: str) -> bool:
        """Whether that factor source answers on every broker."""
        return all(broker_sample.source == source for broker_sample in self.brokers.values())


@dataclass
class Setup:
    """Everything that runs: the brokers, a producer for each, the pipeline, and the disk of broker 3."""

    cluster: Cluster
    loads: dict[int, ProducerLoad]
    driver: PipelineProcess
    disk: Disk
    began: float

    def sample(self) -> Sample:
        """Takes a sample of all brokers."""
        at = time.monotonic() - self.began
        return Sample(at, {node.node_id: self._broker_sample(node) for node in self.cluster.brokers})

    def _broker_sample(self, node: KafkaNode) -> BrokerSample:
        beans: dict[str, dict[str, Any]] = {}
        for kind in _BEANS:  # one by one: a bean that is removed during a query makes the whole query fail
            beans |= Jmx(node).query(f"quotahost:type={kind}")
        beans = {name.removeprefix("quotahost:"): bean for name, bean in beans.items()}
        table = beans["type=QuotaTable"]
        answers = {source: beans.get(_bean("FactorSource", source), {}) for source in (RECORD_SOURCE, SNAPSHOT_SOURCE)}
        source = next((name for name, bean in answers.items() if bean.get("Answers") == 1), "")
        age = beans.get("type=ClusterRecord", {}).get("Age")
        return BrokerSample(
            STATES[int(table["State"])],
            float(table["Factor"]),
            source,
            None if age is None else float(age),
            float(beans["type=Factor"]["Transitions"]),
            self.loads[node.node_id].meter.rate_over(2.0),
        )

    def records(self) -> int:
        """How many records were appended to the producers' topics, acknowledged or not."""
        config = self.cluster.client_config(client_id="harness") | {"group.id": "harness"}
        consumer = Consumer(config)
        try:
            partitions = [TopicPartition(topic(broker), 0) for broker in self.loads]
            return sum(int(consumer.get_watermark_offsets(each, timeout=30)[1]) for each in partitions)
        finally:
            consumer.close()


def _bean(kind: str, name: str) -> str:
    return f"type={kind},name={name}"


def topic(broker: int) -> str:
    """The topic whose only replica is on that broker."""
    return f"written-{broker}"


@contextmanager
def running_setup(folder: Path, own_disk: bool) -> Iterator[Setup]:
    """Starts three brokers and their producers; the pipeline is not started yet.

    Args:
        folder: the place of the nodes' directories.
        own_disk: whether ``node-3`` in it is a file system of its own. If not, limits stand for a disk that fills.
    """
    properties = plugin_properties(SETTINGS) | BROKER_PROPERTIES | dict(QUICK_QUOTAS)
    users = dict.fromkeys(("app", "service"), "secret")
    with Cluster(folder, brokers=3, classpath=[JAR], properties=properties, users=users) as cluster:
        create_topics(cluster)
        config: dict[str, Any] = cluster.client_config("app", "app") | {"linger.ms": 50}
        # A rate just below the quota is even; a producer that has more to send gets it in bursts.
        loads = {n: ProducerLoad(config, topic(n), rate=0.95 * QUOTA) for n in (1, 2, 3)}
        driver = PipelineProcess(folder / "pipeline", cluster.bootstrap, **PIPELINE)
        disk = FilledDisk(cluster) if own_disk else LoweredLimits(cluster)
        with ExitStack() as stack:
            stack.callback(driver.kill)
            stack.callback(disk.close)
            for load in loads.values():
                stack.enter_context(load)
            yield Setup(cluster, loads, driver, disk, time.monotonic())


def create_topics(cluster: Cluster) -> None:
    """Creates a topic for each broker's producer, and the topic that fills the disk of broker 3."""
    place_topics(cluster, {topic(n): n for n in (1, 2, 3)} | {FilledDisk.TOPIC: BROKER})
