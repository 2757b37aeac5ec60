"""Measures the time from free space on a full disk until the same producers have their rate back."""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from bench.disks.brokers import Contender, brokers, check_alive, free_bytes, is_stopped, min_free, on_disk
from bench.disks.load import PacedProducer
from bench.markdown import table
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad
from harness.java.helper import Helper
from harness.kafka.admin import create_topic, delete_topics, place_topics
from harness.kafka.cluster import Cluster
from harness.system.background import Background
from harness.system.waiting import eventually

HEADROOM: Final = 600_000_000  # bytes; the producers use a tenth, the filler the rest
OVER: Final = 50_000_000  # bytes by which the disk exceeds the limit
RATE: Final = 3e6  # bytes/s of librdkafka's producer
PERIOD: Final = 2  # ms between two records of Kafka's own producer
QUOTA: Final = "1250000"  # bytes/s of each broker: a fifth more than the producers use
STEADY: Final = 5.0  # seconds over which the rate before is measured
STOPPED: Final = 15.0  # seconds of the full stop
# A producer has recovered when its rate over so many seconds is this share of its earlier rate.
WINDOW: Final = 0.5
SHARE: Final = 0.9
GIVE_UP: Final = 60.0  # seconds
RUNS: Final = {Contender.WITH_FENCE: 5, Contender.WITHOUT_FENCE: 5, Contender.STRIMZI: 2}


@dataclass(frozen=True)
class Recovered:
    """The results of one run."""

    #: Seconds from free space until librdkafka's producer had recovered; None if that took more than a minute.
    librdkafka: float | None
    java: float | None  # the same for Kafka's own producer
    longest_throttle: float  # the longest throttle time in seconds that a broker reported to librdkafka
    failed: int  # how many records librdkafka lost
    appended: int  # bytes that both producers appended between the full stop and the return of space


def runs(contender: Contender, count: int) -> list[Recovered]:
    """Starts three brokers; each run has new producers and topics."""
    with brokers(contender, 3, HEADROOM, static_produce=QUOTA) as cluster:
        return [_one(cluster, number) for number in range(count)]


def _one(cluster: Cluster, number: int) -> Recovered:
    node, load_topic, java_topic = cluster.brokers[0], f"load-{number}", f"java-{number}"
    create_topic(node, load_topic, partitions=3)
    # Broker 3 has no limit: the snapshots tell it of the full disk.
    place_topics(cluster, {java_topic: 3})
    with ExitStack() as stack:
        load = stack.enter_context(PacedProducer(cluster.client_config("app", "load"), load_topic, RATE))
        java = stack.enter_context(_java_producer(cluster, java_topic))
        time.sleep(2 * STEADY)  # the JVM warms up meanwhile, too
        began = time.monotonic()
        wanted = [SHARE * meter.rate(began - STEADY, began) for meter in (load.meter, java)]
        assert all(wanted), "the producers don't produce"
        with filled(cluster, f"filler-{number}") as empty_disk:
            eventually(lambda: all(is_stopped(each) for each in cluster.brokers), what="a full stop")
            before = _appended(cluster, load_topic, java_topic)
            time.sleep(STOPPED)
            appended = _appended(cluster, load_topic, java_topic) - before
            space_back_at = empty_disk()
        found = _wait(space_back_at, [load.meter, java], wanted)
        check_alive(*cluster.brokers)
        longest_throttle, failed = load.max_throttle(since=began), len(load.errors)
    delete_topics(node, load_topic, java_topic)
    return Recovered(found[0], found[1], longest_throttle, failed, appended)


def _appended(cluster: Cluster, *topics: str) -> int:
    return sum(on_disk(cluster, topic) for topic in topics)


def _wait(space_back_at: float, meters: list[Meter], wanted: list[float]) -> list[float | None]:
    """Returns for each meter the seconds after ``space_back_at`` until its rate over WINDOW reached the wanted rate."""
    found: list[float | None] = [None] * len(meters)
    while None in found and time.monotonic() - space_back_at < GIVE_UP:
        time.sleep(0.02)
        now = time.monotonic()
        for at, meter in enumerate(meters):
            if found[at] is None and meter.rate(now - WINDOW, now) >= wanted[at]:
                found[at] = now - space_back_at
    return found


@contextmanager
def filled(cluster: Cluster, topic: str) -> Iterator[Callable[[], float]]:
    """Fills the disk beyond the limit; yields a function that frees the disk and returns the moment of free space."""
    node = cluster.brokers[0]
    limit = min_free(node)
    create_topic(node, topic, partitions=3)
    config = cluster.client_config("filler", "filler") | {"queue.buffering.max.kbytes": 32_768}
    with ProducerLoad(config | {"batch.size": 1_000_000}, topic, record_size=100_000):
        eventually(lambda: free_bytes(node.directory) <= limit - OVER, 60, "a full disk")

    def empty_disk() -> float:
        delete_topics(node, topic)
        eventually(lambda: free_bytes(node.directory) > limit, 30, "space", poll=0.01)
        return time.monotonic()

    yield empty_disk


class Appended(Background):
    """A background thread whose meter counts the bytes appended to a topic."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        super().__init__()
        self._cluster, self._topic, self.meter = cluster, topic, Meter()

    def _run(self) -> None:
        while not self._stopping.wait(Meter.RESOLUTION):
            more = on_disk(self._cluster, self._topic) - self.meter.bytes
            if more > 0:
                self.meter.add(more)


@contextmanager
def _java_producer(cluster: Cluster, topic: str) -> Iterator[Meter]:
    """Runs Kafka's own producer; the meter counts the appended bytes."""
    config = {"bootstrap.servers": cluster.bootstrap, "client.id": "java", "acks": "all"}
    with ThreadPoolExecutor(1) as pool, Appended(cluster, topic) as appended:
        helper = Helper(cluster.brokers[0].version)
        count = int((2 * STEADY + 60 + STOPPED + GIVE_UP) * 1000 / PERIOD)
        done: Future[Any] = pool.submit(helper.ask, "produce", topic, count, PERIOD, config, timeout=600)
        try:
            yield appended.meter
        finally:
            helper.end()
            done.exception(10)


def _seconds(found: list[float | None]) -> str:
    """Returns median and longest as text, or how many runs gave up."""
    if None in found:
        return f"not within {GIVE_UP:.0f} s ({sum(each is None for each in found)} of {len(found)} runs)"
    known = [each for each in found if each is not None]
    return f"{statistics.median(known):.2f} / {max(known):.2f}"


def report(found: dict[Contender, list[Recovered]]) -> str:
    """Returns a Markdown table."""
    heads = ["median / longest, s", "runs", "librdkafka", "Kafka's own producer"]
    heads += ["longest throttle time reported, s", "records lost", f"MB appended in the {STOPPED:.0f} s"]
    rows = [
        [
            contender,
            str(len(each)),
            _seconds([one.librdkafka for one in each]),
            _seconds([one.java for one in each]),
            f"{max(one.longest_throttle for one in each):,.1f}",
            str(sum(one.failed for one in each)),
            f"{statistics.median(one.appended for one in each) / 1e6:.1f}",
        ]
        for contender, each in found.items()
    ]
    return table(heads, rows)


def main(count: int | None = None) -> str:
    """Measures all contenders; returns the Markdown table."""
    return report({contender: runs(contender, count or RUNS[contender]) for contender in Contender})
