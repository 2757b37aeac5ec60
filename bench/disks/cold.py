"""Measures the first moments of a new cluster: are creations refused, and how long does a producer wait?

Three brokers start at once. From before they listen, one client creates topics, one after the other, and one producer
writes to the first. The peer is the same cluster without the jar, in the same run.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Self

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.markdown import machine_line, table
from harness.clients.meter import Meter
from harness.kafka.cluster import Cluster
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.waiting import eventually

CREATIONS: Final = 45
QUIET: Final = 15.0  # seconds of writing after the last creation
RECORD: Final = 1_000  # bytes
STEP: Final = 0.1  # seconds
#: Kafka's answer before any broker is registered; a stock cluster gives it, too.
NO_BROKER_YET: Final = "INVALID_REPLICATION_FACTOR"
ALREADY_THERE: Final = "TOPIC_ALREADY_EXISTS"
COMMON: Final = {"fence.authorizer": "none", "static.storage.hard.min-free-bytes": "1"}
CLUSTERS: Final[dict[str, dict[str, str] | None]] = {
    "stock": None,
    "quotahost, `snapshots`": COMMON | {"factor.source": "snapshots"},
    "quotahost, `cluster-volumes`, no pipeline": COMMON | {"factor.source": "cluster-volumes"},
}


@dataclass
class FirstClients:
    """Creates topics from the first moment on, and writes to the first one; times in seconds since the start.

    Attributes:
        first_created: when the first creation was answered.
        refused: creations that a broker refused.
        failed: records that were not delivered.
        meter: what was acknowledged.
    """

    config: dict[str, Any]
    first_created: float = 0.0
    created: int = 0
    refused: list[str] = field(default_factory=list)
    failed: int = 0
    meter: Meter = field(default_factory=Meter)

    def __enter__(self) -> Self:
        self._end = threading.Event()
        self._begin = time.monotonic()
        self._threads = [threading.Thread(target=work) for work in (self._create, self._write)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _create(self) -> None:
        while self.created + len(self.refused) < CREATIONS and not self._end.is_set():
            # A client of its own: one that was there before the brokers waits ever longer between its tries.
            admin, name = AdminClient(self.config), f"first-{self.created}"
            try:
                admin.create_topics([NewTopic(name, 3, 3)], request_timeout=5)[name].result(10)
            except TimeoutError:
                continue
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                if error.name() != ALREADY_THERE:  # an answer came too late, and the topic was made all the same
                    if error.code() >= 0 and error.name() != NO_BROKER_YET:  # below 0: nobody answers
                        self.refused.append(f"{error.name()}: {error.str()}")
                    continue
            self.created += 1
            self.first_created = self.first_created or time.monotonic() - self._begin

    def _write(self) -> None:
        while not self.created and not self._end.wait(0.01):
            pass
        producer = Producer(self.config | {"linger.ms": 5, "topic.metadata.refresh.fast.interval.ms": 100})
        while not self._end.is_set():
            producer.produce("first-0", bytes(RECORD), on_delivery=self._delivered)
            producer.poll(0.01)
        self.failed += producer.flush(60)

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is None:
            self.meter.add(RECORD)
        else:
            self.failed += 1


def longest_silence(meter: Meter, began: float, ended: float) -> float:
    """The longest time in seconds, between two moments, in which the meter counted nothing; to a tenth."""
    steps = [began + n * STEP for n in range(int((ended - began) / STEP))]
    silences = groupby(meter.rate(at, at + STEP) == 0 for at in steps)
    return max((len(list(group)) * STEP for silent, group in silences if silent), default=0.0)


def run(settings: dict[str, str] | None) -> list[str]:
    """Starts one cluster; returns the cells of its row."""
    more: dict[str, Any] = {}
    if settings is not None:
        more = {"classpath": [JAR], "properties": plugin_properties(settings) | FENCE}
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder), brokers=3, **more)
        config = cluster.client_config(client_id="first") | {"log_level": 0, "reconnect.backoff.max.ms": 100}
        try:
            with FirstClients(config) as first:
                cluster.start()
                eventually(lambda: first.created + len(first.refused) >= CREATIONS, 120)
                eventually(lambda: first.meter.bytes > 0, 60)
                began = time.monotonic()
                time.sleep(QUIET)
                silence = longest_silence(first.meter, began, began + QUIET)
        finally:
            cluster.kill()
    refused = f"{len(first.refused)} of {CREATIONS}"
    return [f"{first.first_created:.1f}", refused, f"{silence:.1f}", str(first.failed)]


def main(runs: int | None = None) -> str:
    """Measures all clusters in turn; a Markdown table with a row for each start."""
    rows = [[name, *run(settings)] for _ in range(runs or 1) for name, settings in CLUSTERS.items()]
    heads = ["cluster", "first topic after, s", "creations refused", "longest silence of a producer, s", "records lost"]
    return table(heads, rows) + "\n\n" + machine_line()
