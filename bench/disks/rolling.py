"""Measures a rolling restart of three brokers under load: for how long does a producer get nothing acknowledged?

Each broker is stopped, stays down for longer than ``validity``, and is started again. The peer is the same cluster
without the jar: a producer waits there, too, while the leadership of its partition moves.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from bench.markdown import machine_line, table
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.cluster import Cluster
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.waiting import eventually

VALIDITY: Final = 10  # seconds
PAUSE: Final = 14.0  # seconds for which each broker stays down
SETTLED: Final = 5.0  # seconds after a start before the next stop
PRODUCERS: Final = 6
RATE: Final = 200e3  # bytes/s of each
STEP: Final = 0.1  # seconds
QUOTAHOST: Final = {
    "factor.source": "snapshots",
    "fence.authorizer": "none",
    "validity": f"{VALIDITY}s",
    "snapshots.period": "1s",
    "static.storage.hard.min-free-bytes": "1",
}


@dataclass(frozen=True)
class Rolled:
    """One run; times in seconds.

    Attributes:
        took: from the first stop to the end.
        nothing: whole seconds in which at least one producer got nothing acknowledged.
        longest: the longest silence of any producer.
        failed: records that were not delivered.
    """

    took: float
    nothing: int
    longest: float
    failed: int


def run(with_quotahost: bool) -> Rolled:
    """Restarts the three brokers of one cluster, one after the other."""
    more: dict[str, Any] = {}
    if with_quotahost:
        more = {"classpath": [JAR], "properties": plugin_properties(QUOTAHOST) | FENCE}
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), brokers=3, **more) as cluster:
        topics = [f"t{number}" for number in range(PRODUCERS)]
        for topic in topics:
            create_topic(cluster.brokers[0], topic, replicas=3, config={"min.insync.replicas": "2"})
        config = cluster.client_config(client_id="p") | {"log_level": 0, "reconnect.backoff.max.ms": 500}
        with ExitStack() as stack:
            loads = [stack.enter_context(ProducerLoad(config, topic, 1000, RATE)) for topic in topics]
            eventually(lambda: all(load.meter.bytes > 2 * RATE for load in loads), 60)
            began = time.monotonic()
            for node in cluster.brokers:
                node.stop()
                time.sleep(PAUSE)
                node.start()
                time.sleep(SETTLED)
            ended = time.monotonic()
            failed = sum(load.drain() + len(load.errors) for load in loads)
        meters = [load.meter for load in loads]
        return Rolled(
            ended - began, _nothing(meters, began, ended), max(longest_silence(m, began, ended) for m in meters), failed
        )


def _nothing(meters: list[Meter], began: float, ended: float) -> int:
    seconds = [began + n for n in range(int(ended - began))]
    return sum(any(meter.rate(at, at + 1) == 0 for meter in meters) for at in seconds)


def longest_silence(meter: Meter, began: float, ended: float) -> float:
    """The longest time in seconds, between two moments, in which the meter counted nothing; to a tenth."""
    steps = [began + n * STEP for n in range(int((ended - began) / STEP))]
    silences = groupby(meter.rate(at, at + STEP) == 0 for at in steps)
    return max((len(list(group)) * STEP for silent, group in silences if silent), default=0.0)


def report(stock: list[Rolled], quotahost: list[Rolled]) -> str:
    """A Markdown table with a row for each run."""
    heads = [
        "cluster",
        "restarts took, s",
        "seconds in which any producer got nothing",
        "longest silence of any, s",
        "records lost",
    ]
    rows = [
        [name, f"{each.took:.0f}", str(each.nothing), f"{each.longest:.1f}", str(each.failed)]
        for name, runs in (("stock", stock), ("quotahost", quotahost))
        for each in runs
    ]
    return table(heads, rows) + "\n\n" + machine_line()


def main(runs: int | None = None) -> str:
    """Measures both, in pairs."""
    pairs = [(run(False), run(True)) for _ in range(runs or 1)]
    return report([stock for stock, _ in pairs], [quotahost for _, quotahost in pairs])
