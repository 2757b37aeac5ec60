"""Measures the first moments of a new cluster: are creations refused, and how long does a producer wait?

Three brokers start at once. From before they listen, one client creates topics, one after the other, and one producer
writes to the first. The peer is the same cluster without the jar, in the same run.
"""

from __future__ import annotations

import tempfile
import threading
import time
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from bench.markdown import machine_line, table
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import creates
from harness.kafka.cluster import Cluster
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.waiting import eventually

CREATIONS: Final = 45
QUIET: Final = 15.0  # seconds of writing after the last creation
RATE: Final = 100e3  # bytes/s of the producer
STEP: Final = 0.1  # seconds
COMMON: Final = {"fence.authorizer": "none", "static.storage.hard.min-free-bytes": "1"}
CLUSTERS: Final[dict[str, dict[str, str] | None]] = {
    "stock": None,
    "quotahost, `snapshots`": COMMON | {"factor.source": "snapshots"},
    "quotahost, `cluster-volumes`, no pipeline": COMMON | {"factor.source": "cluster-volumes"},
}


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
        starting = threading.Thread(target=cluster.start)
        begin = time.monotonic()
        starting.start()
        try:
            refusals: list[str] = []
            eventually(lambda: creates(config, "first-0", 3, 3, refusals))
            first = time.monotonic() - begin
            with ProducerLoad(config, "first-0", 1_000, RATE) as load:
                for number in range(1, CREATIONS):
                    eventually(partial(creates, config, f"first-{number}", 3, 3, refusals))
                eventually(lambda: load.meter.bytes > 0)
                began = time.monotonic()
                time.sleep(QUIET)
                silence = longest_silence(load.meter, began, began + QUIET)
                failed = load.drain() + len(load.errors)
        finally:
            starting.join()
            cluster.kill()
    return [f"{first:.1f}", f"{len(refusals)} of {len(refusals) + CREATIONS}", f"{silence:.1f}", str(failed)]


def main(runs: int | None = None) -> str:
    """Measures all clusters in turn; a Markdown table with a row for each start."""
    rows = [[name, *run(settings)] for _ in range(runs or 1) for name, settings in CLUSTERS.items()]
    heads = ["cluster", "first topic after, s", "creations refused", "longest silence of a producer, s", "records lost"]
    return table(heads, rows) + "\n\n" + machine_line()
