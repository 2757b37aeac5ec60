"""Measures the Spark pipeline: its rate on a backlog, its latency, and its CPU when idle.

The broker, the driver and this process share the machine, so its figures depend on the number of cores.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bench.markdown import table
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.system.pipeline import PipelineProcess
from harness.system.ports import free_port
from harness.system.process import children, cpu_seconds
from harness.system.waiting import eventually
from quotahost.model import Limit, LimitType, Volume
from quotahost.records import cluster_volumes as cluster_records
from quotahost.records import snapshot as snapshot_records

SNAPSHOTS: Final = "__quotahost_snapshots"
CLUSTERS: Final = "__quotahost_cluster_volumes"
BACKLOG: Final = 1_000_000  # snapshots
BROKERS: Final = 10_000
ROUNDS: Final = 5
SETTLED_BATCHES: Final = 4  # batches for which to wait after a backlog
VOLUMES: Final = 2  # volumes of each broker
SAMPLES: Final = 100  # latencies
WARM_UP: Final = 100  # latencies that are measured first and dropped, because a JVM compiles for minutes
HISTORY: Final = 8  # snapshots of each broker before the measurement
IDLE: Final = 30.0  # seconds
SETTLED: Final = 60.0  # seconds after which an idle driver is measured again
FULL: Final = 100  # brokers
TOPICS: Final = frozenset(f"team-{n % 7}.orders-of-region-{n:04}" for n in range(1000))


def main() -> str:
    """Returns the figures of backlog, latency and idle CPU, as Markdown."""
    with tempfile.TemporaryDirectory(prefix="quotahost-bench-") as folder:
        with KafkaNode(Path(folder) / "backlog") as node:
            parts = [backlog(Path(folder), node)]
        rows = []
        for known, full in ((100, 0), (BROKERS, 0), (BROKERS, FULL)):
            with KafkaNode(Path(folder) / f"latency-{known}-{full}") as node:
                rows.append(latency(Path(folder), node, known, full))
        parts.append(table(["brokers known", "p50", "p90", "p99", "longest"], rows))
        with KafkaNode(Path(folder) / "idle") as node:
            rows = [idle(Path(folder), node, tick) for tick in ("1s", "5s", "30s")]
        parts.append(table(["tick", "driver's CPU, 10 s after its start", "a minute after"], rows))
    return "\n\n".join(parts)


def snapshot(broker: int, at: datetime, used: int = 0, full: int = 0) -> bytes:
    """Returns the snapshot of a broker that has two volumes of 1 TB, with limits.

    The first ``full`` brokers have a volume above its soft limit, with a replica of each of TOPICS topics on it.
    """
    name = str(broker)
    soft, hard = Limit(LimitType.MIN_FREE_PERCENTAGE, 20), Limit(LimitType.MIN_FREE_PERCENTAGE, 5)
    disks = [Volume(name, f"/dev/sd{n}", 10**12, 5 * 10**11 + broker * 10**6 + used + n) for n in range(VOLUMES)]
    if broker < full:
        disks[0] = replace(disks[0], consumed=85 * 10**10 + used, topics=TOPICS)
    return snapshot_records.encode(snapshot_records.Snapshot(name, at, tuple(disks), soft, hard))


def fill(bootstrap: str, brokers: int, each: int, full: int = 0) -> None:
    """Publishes ``each`` snapshots of so many brokers, a second apart; the last one has the current time."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000})
    begin = datetime.now(UTC) - timedelta(seconds=each)
    for second in range(each):
        at = begin + timedelta(seconds=second)
        for broker in range(brokers):
            producer.produce(SNAPSHOTS, key=str(broker), value=snapshot(broker, at, second, full))
        producer.poll(0)
        while len(producer) > 500_000:
            producer.poll(0.1)
    assert producer.flush(120) == 0


class Driver(PipelineProcess):
    """The pipeline with its metrics endpoint, and its CPU time."""

    def __init__(self, folder: Path, node: KafkaNode, **options: object) -> None:
        # As if mirrored from another cluster: the own cluster's snapshots count only for the one registered broker.
        options = {"validity": "1h", "metrics_port": free_port(), "snapshots_topic": f"{SNAPSHOTS}=bench", **options}
        super().__init__(folder, node.bootstrap, **options)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspends the driver's processes during the block."""
        group = os.getpgid(self.pid)
        os.killpg(group, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(group, signal.SIGCONT)

    def cpu(self) -> float:
        """Returns the CPU seconds of the driver so far, Python's and Java's."""
        return sum(map(cpu_seconds, [self.pid, *children(self.pid)]))


def backlog(folder: Path, node: KafkaNode) -> str:
    """Returns the snapshots/s that a driver reads from a full topic: right after its start, and as it warms up.

    The driver is suspended while the next snapshots are written, so its JVM keeps its compiled code.
    """
    create_topic(node, SNAPSHOTS)
    fill(node.bootstrap, BROKERS, BACKLOG // BROKERS)
    lines = []
    with Driver(folder / "pipeline-backlog", node) as driver:
        for round_number in range(1, ROUNDS + 1):
            until = round_number * BACKLOG
            lines.append(_time_backlog(driver, until))
            if round_number < ROUNDS:
                _settle(driver)
                with driver.suspended():
                    fill(node.bootstrap, BROKERS, BACKLOG // BROKERS)
    begin = f"Each time {BACKLOG:,} snapshots of {BROKERS:,} brokers ({VOLUMES} volumes each)"
    return f"{begin}, by a driver that was just started, and then again: {'; '.join(lines)}"


def _settle(driver: Driver) -> None:
    """Waits for some batches, so that the other queries have begun and the driver has done all its work a few times."""
    batches = driver.metric("batches_total", query="volumes")
    eventually(lambda: driver.metric("batches_total", query="volumes") >= batches + SETTLED_BATCHES, poll=0.2)


def _time_backlog(driver: Driver, until: int) -> str:
    began, cpu = time.monotonic(), driver.cpu()
    eventually(lambda: driver.metric("rows_total", query="volumes") >= until, 600, poll=0.2)
    return f"{BACKLOG / (time.monotonic() - began):,.0f}/s, {driver.cpu() - cpu:.0f} CPU seconds"


def latency(folder: Path, node: KafkaNode, known: int, full: int = 0) -> list[str]:
    """Returns a row: seconds from a snapshot's time until a reader has a record that includes the snapshot."""
    create_topic(node, SNAPSHOTS)
    fill(node.bootstrap, known, HISTORY, full)
    with Driver(folder / f"pipeline-{known}-{full}", node) as driver:
        eventually(lambda: driver.metric("rows_total", query="volumes") >= known, 300)
        latencies = sorted(list(_latencies(node, known, full))[WARM_UP:])
    shown = [latencies[int(len(latencies) * share)] for share in (0.5, 0.9, 0.99)] + latencies[-1:]
    told = f", {full} of them with {len(TOPICS):,} topics above their soft limits" if full else ""
    return [f"{known:,}{told}", *(f"{seconds * 1000:.0f} ms" for seconds in shown)]


def _latencies(node: KafkaNode, known: int, full: int) -> Iterator[float]:
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "bench", "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(CLUSTERS, 0, OFFSET_END)])
    consumer.poll(2)
    for number in range(WARM_UP + SAMPLES):
        time.sleep(0.1 + (number * 7 % 10) / 20)  # uneven, so that the snapshots are not in step with the batches
        at = datetime.now(UTC).replace(microsecond=datetime.now(UTC).microsecond // 1000 * 1000)
        broker = number % known
        producer.produce(SNAPSHOTS, key=str(broker), value=snapshot(broker, at, number, full))
        producer.flush(5)
        yield _wait_for_record(consumer, at) - at.timestamp()
    consumer.close()


def _wait_for_record(consumer: Consumer, at: datetime) -> float:
    while True:
        message = consumer.poll(30)
        assert message is not None, "the pipeline publishes no record"
        if message.error() is None:
            record = cluster_records.decode(message.key(), message.value() or b"")
            if record.newest_snapshot_at is not None and record.newest_snapshot_at >= at:
                return time.time()


def idle(folder: Path, node: KafkaNode, tick: str) -> list[str]:
    """Returns a row: the share of a core that the driver uses while it knows three brokers and no snapshot comes."""
    if tick == "1s":
        create_topic(node, SNAPSHOTS)
        fill(node.bootstrap, 3, 1)
    with Driver(folder / f"pipeline-tick-{tick}", node, tick=tick) as driver:
        eventually(lambda: driver.metric("rows_total", query="volumes") >= 3)
        early, late = _share(driver, 10), _share(driver, SETTLED - 10 - IDLE)
    return [tick, f"{early:.1%} of a core", f"{late:.1%}"]


def _share(driver: Driver, after: float) -> float:
    """Returns the share of a core that a driver uses, ``after`` seconds in which the JVM's compilers settle."""
    time.sleep(after)
    cpu, began = driver.cpu(), time.monotonic()
    time.sleep(IDLE)
    return (driver.cpu() - cpu) / (time.monotonic() - began)
