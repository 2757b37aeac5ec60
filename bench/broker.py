"""A broker with the callback against the same broker without, in pairs: start, memory, produce throughput."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.clients.many_clients import introduce_clients
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, plugin_properties

WARM_UP: Final = 5.0  # seconds
MEASURED: Final = 10.0


def _node(directory: Path, with_callback: bool, **settings: str) -> KafkaNode:
    properties = plugin_properties(settings) if with_callback else {}
    return KafkaNode(
        directory, classpath=[JAR], properties=properties, class_archive=False, heap="512m", jvm_options=()
    )


def _one(hosted: bool) -> tuple[float, float, float]:
    """Seconds to start, MB resident once it is idle, bytes/s produced."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with _node(Path(folder), hosted) as node:
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
    """A Markdown table of medians over pairs, the order swapped each time."""
    runs: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    for number in range(count):
        for hosted in (True, False) if number % 2 else (False, True):
            runs[hosted].append(_one(hosted))

    def median(pick: Callable[[tuple[float, float, float], tuple[float, float, float]], float]) -> float:
        return statistics.median(pick(a, b) for a, b in zip(runs[True], runs[False], strict=True))

    return "\n".join(
        [
            f"| with the callback against without, median of {count} pairs | |",
            "|---|---|",
            f"| start-up | {median(lambda a, b: a[0] - b[0]):+.2f} s |",
            f"| resident memory after the start | {median(lambda a, b: a[1] - b[1]):+.0f} MB |",
            f"| produce throughput | {median(lambda a, b: a[2] / b[2]):.3f} |",
        ]
    )


def flood(count: int) -> str:
    """Resident memory while ever new clients come to a small table, in MB."""
    lines = ["| clients seen | resident MB |", "|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"clients.max": "10000", "static.produce": "1M"}
        with _node(Path(folder), True, **settings) as node:
            for step in range(10):
                introduce_clients(node, (f"flood-{step}-{n}" for n in range(count // 10)))
                lines.append(f"| {(step + 1) * count // 10:,} | {node.rss() / 1e6:.0f} |")
    return "\n".join(lines)
