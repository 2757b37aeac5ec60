"""Measures what it costs a broker to publish snapshots, and to read those of 1,000 brokers."""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from bench.disks.brokers import Contender, brokers, check_alive, on_disk
from bench.markdown import machine_line, table
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from quotahost.api import Context
from quotahost.broker.plugins.factor_sources.snapshots import Snapshots
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.model import ClusterVolumes, Limit, LimitType, Volume
from quotahost.records import snapshot as snapshot_records
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.testing.broker import FakeBroker

TOPIC: Final = "__quotahost_snapshots"
MANY: Final = 1_000  # brokers
VOLUMES: Final = 20  # of each broker
PERIOD: Final = 5.0  # seconds: snapshots.period
WATCHED: Final = 60.0  # seconds
ROOM: Final = 10**9  # bytes of headroom, so that no broker stops producers here


def snapshot(broker: int, used: int = 0) -> snapshot_records.Snapshot:
    """The snapshot of a large broker: 20 volumes of 4 TB, with limits."""
    name = str(broker)
    disks = (Volume(name, f"/dev/nvme{n}n1", 4 * 10**12, 10**12 + n * 10**9 + used) for n in range(VOLUMES))
    soft, hard = Limit(LimitType.MIN_FREE_PERCENTAGE, 20), Limit(LimitType.MIN_FREE_PERCENTAGE, 5)
    return snapshot_records.Snapshot(name, datetime.now(UTC), tuple(disks), soft, hard)


def _timed(work: Callable[[], object], times: int) -> float:
    """The median of the CPU seconds that this thread needs for the work."""
    each = []
    for _ in range(times):
        began = time.thread_time()
        work()
        each.append(time.thread_time() - began)
    return statistics.median(each)


@dataclass(frozen=True)
class CpuCosts:
    """CPU seconds of one thread for each step, without a broker.

    Attributes:
        size: bytes of a record.
        encode: makes one record.
        take: reads, checks and remembers one record.
        read_same: reads the source when no record has come.
        read_new: reads the source after one record.
        judge: runs the policy on all volumes.
    """

    size: int
    encode: float
    take: float
    read_same: float
    read_new: float
    judge: float


def cpu_costs() -> CpuCosts:
    """Measures the steps in this process."""
    settings = Settings.from_properties({PREFIX + "factor.source": "snapshots"})
    everyone = dict.fromkeys(range(MANY), False)  # more brokers than a bench can start
    broker = FakeBroker(client={"bootstrap.servers": "127.0.0.1:1"}, brokers=everyone)
    log = logging.getLogger("bench")
    context = Context("snapshots", None, settings, 0, log, broker=broker, metrics=broker)
    source, policy = Snapshots(context), Limits(context)
    try:
        return _measure_costs(source, policy)
    finally:
        source.close()


def _measure_costs(source: Snapshots, policy: Limits) -> CpuCosts:
    first = snapshot(1)
    value = snapshot_records.encode(first)
    everyone = [(str(n).encode(), snapshot_records.encode(snapshot(n))) for n in range(MANY)]

    def take_all() -> None:
        for key, record in everyone:
            source.record(key, record, True)

    take = _timed(take_all, 1) / MANY
    volumes: ClusterVolumes = source.read()
    assert len(volumes.volumes) > (MANY - 2) * VOLUMES, volumes.unknown

    def new_record() -> None:
        source.record(b"7", snapshot_records.encode(snapshot(7, used=time.monotonic_ns() % 10**9)), True)

    def read_after_new_record() -> float:
        new_record()
        return _timed(source.read, 1)

    return CpuCosts(
        len(value),
        _timed(lambda: snapshot_records.encode(first), 200),
        take,
        _timed(source.read, 40),
        statistics.median(read_after_new_record() for _ in range(40)),
        _timed(lambda: min(policy.quota_factor(volume) for volume in volumes.volumes), 10),
    )


def cpu_share(node: KafkaNode, seconds: float = WATCHED) -> float:
    """The share of one core that the node uses over so many seconds from now."""
    began, used = time.monotonic(), node.cpu_seconds()
    time.sleep(seconds)
    check_alive(node)
    return (node.cpu_seconds() - used) / (time.monotonic() - began)


def three_brokers() -> tuple[int, float, float, float]:
    """Three idle brokers: records in 60 s, bytes of a record, its bytes on one disk, one broker's share of a core."""
    with brokers(Contender.WITH_FENCE, 3, ROOM) as cluster:
        time.sleep(20)
        records, written = len(_values(cluster)), on_disk(cluster, TOPIC)
        share = cpu_share(cluster.brokers[0])
        values, grown = _values(cluster)[records:], on_disk(cluster, TOPIC) - written
        count = len(values)
        return count, sum(map(len, values)) / count, grown / _replicas(cluster) / count, share


def _replicas(cluster: Cluster) -> int:
    return sum((node.data_dirs[0] / f"{TOPIC}-0").exists() for node in cluster.brokers)


def _values(cluster: Cluster) -> list[bytes]:
    """Key and value of every record of the topic, joined."""
    costs = {"group.id": "bench", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer(cluster.client_config(client_id="bench") | costs)
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found = []
    try:
        while (message := consumer.poll(15)) is not None:
            error = message.error()
            if error is None:
                found.append((message.key() or b"") + (message.value() or b""))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
        raise TimeoutError(f"no end of {TOPIC}")
    finally:
        consumer.close()


def without_factor_source() -> float:
    """The share of a core that an idle broker uses without a factor source."""
    with brokers(Contender.WITH_FENCE, 1, ROOM, factor_source="fixed") as cluster:
        time.sleep(20)
        return cpu_share(cluster.brokers[0])


def many_publishers() -> tuple[float, float]:
    """The share of a core that one broker uses when idle, and while 1,000 brokers' snapshots come each period."""
    with brokers(Contender.WITH_FENCE, 1, ROOM) as cluster:
        (node,) = cluster.brokers
        time.sleep(20)
        quiet = cpu_share(node)
        with _everyone_publishes(node):
            time.sleep(PERIOD)
            return quiet, cpu_share(node)


@contextmanager
def _everyone_publishes(node: KafkaNode) -> Iterator[None]:
    """Publishes snapshots evenly over the period, one record a batch, as 1,000 producers would."""
    stopping = threading.Event()
    producer = Producer(node.client_config(client_id="quotahost-1") | {"linger.ms": 0, "log_level": 4})

    def publish() -> None:
        number = 0
        while not stopping.wait(PERIOD / MANY):
            number = number % MANY + 1
            record = snapshot(1000 + number)
            producer.produce(TOPIC, key=record.broker, value=snapshot_records.encode(record))
            producer.poll(0)

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        producer.flush(10)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def main() -> str:
    """A Markdown table of all figures."""
    costs = cpu_costs()
    count, size, stored, three = three_brokers()
    bare, (quiet, loud) = without_factor_source(), many_publishers()
    interval = Settings.from_properties({}).factor_interval.total_seconds()
    rows = [
        ["three brokers, idle: records a minute, of each", f"{count / 3 * 60 / WATCHED:.1f}"],
        ["a record of one volume, key and value", f"{size:.0f} bytes, {stored:.0f} on a disk"],
        ["a broker's CPU, idle, without and with snapshots (3 brokers)", f"{bare:.1%}, {three:.1%} of a core"],
        [f"a record of {VOLUMES} volumes", f"{costs.size:,} bytes"],
        [f"{MANY:,} brokers, a period of {PERIOD:.0f} s", f"{costs.size * MANY / PERIOD / 1e3:,.0f} kB/s"],
        ["to make one such record", _ms(costs.encode)],
        ["to read, check and remember one", _ms(costs.take)],
        [f"the same for {MANY:,} brokers each period", f"{costs.take * MANY / PERIOD:.1%} of a core"],
        [f"the source's answer, {MANY * VOLUMES:,} volumes, nothing new", _ms(costs.read_same)],
        ["the same after one record", _ms(costs.read_new)],
        ["the policy on all of these, when any is new", _ms(costs.judge)],
        [
            f"answer and policy each {interval * 1000:.0f} ms, always something new",
            f"{(costs.read_new + costs.judge) / interval:.1%} of a core",
        ],
        [
            f"a real broker's CPU, idle, and while {MANY:,} brokers publish into its topic",
            f"{quiet:.1%}, {loud:.1%} of a core",
        ],
    ]
    return table(["what", ""], rows) + "\n\n" + machine_line()
