"""Compares a broker with the callback and the same broker without it: start, memory, produce throughput.

They run in pairs, in alternating order, so that a machine that slows down in the meantime disturbs neither.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.markdown import table
from harness.clients.many_clients import introduce_clients
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, plugin_properties

WARM_UP: Final = 5.0  # seconds before the measurement
MEASURED: Final = 10.0  # seconds


def _node(directory: Path, with_callback: bool, **settings: str) -> KafkaNode:
    properties = plugin_properties(settings) if with_callback else {}
    return KafkaNode(
        directory, classpath=[JAR], properties=properties, class_archive=False, heap="512m", jvm_options=()
    )


def _measure(with_callback: bool) -> tuple[float, float, float]:
    """Seconds to start, resident MB of the idle broker, bytes/s produced."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with _node(Path(folder), with_callback) as node:
            start = time.monotonic() - began
            rss = node.rss() / 1e6
            create_topic(node, "t")
            with ProducerLoad(node.client_config(client_id="p"), "t", record_size=1_000) as load:
                time.sleep(WARM_UP)
                begin = time.monotonic()
                time.sleep(MEASURED)
                rate = load.meter.rate(begin, time.monotonic())
    return start, rss, rate


def pairs(count: int) -> str:
    """A Markdown table of medians over so many pairs of runs."""
    runs: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    for number in range(count):
        for with_callback in (True, False) if number % 2 else (False, True):
            runs[with_callback].append(_measure(with_callback))

    def median(pick: Callable[[tuple[float, float, float], tuple[float, float, float]], float]) -> float:
        return statistics.median(pick(a, b) for a, b in zip(runs[True], runs[False], strict=True))

    return table(
        [f"with the callback against without, median of {count} pairs", ""],
        [
            ["start-up", f"{median(lambda a, b: a[0] - b[0]):+.2f} s"],
            ["resident memory after the start", f"{median(lambda a, b: a[1] - b[1]):+.0f} MB"],
            ["produce throughput", f"{median(lambda a, b: a[2] / b[2]):.3f}"],
        ],
    )


def flood(count: int) -> str:
    """A Markdown table of the resident memory in MB while ever new clients come to a broker with a small table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        settings = {"clients.max": "10000", "static.produce": "1M", "static.scope": "client"}
        with _node(Path(folder), True, **settings) as node:
            for step in range(10):
                introduce_clients(node, (f"flood-{step}-{n}" for n in range(count // 10)))
                rows.append([f"{(step + 1) * count // 10:,}", f"{node.rss() / 1e6:.0f}"])
    return table(["clients seen", "resident MB"], rows)
