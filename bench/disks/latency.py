"""Measures how soon three brokers act when a disk of one crosses its hard limit, and when it has space again."""

import math
import os
import random
import statistics
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from bench.disks.brokers import CHECK_INTERVAL, Contender, brokers, free_bytes, is_stopped, min_free
from bench.markdown import table
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually

HEADROOM: Final = 100_000_000  # bytes
OVER: Final = 20_000_000  # bytes by which the disk exceeds the limit
CROSSINGS: Final = {Contender.WITH_FENCE: 40, Contender.STRIMZI: 10}
# Random seconds between crossings, so that the crossings are not in step with the plugins' periods.
PAUSES: Final = (0.5, 1.8)
_STAMP: Final = "%Y-%m-%d %H:%M:%S,%f"

Delays = list[float]
Measure = Callable[[Cluster, bool, float, dict[int, int]], Delays]


def run(contender: Contender, crossings: int) -> tuple[list[Delays], list[Delays]]:
    """Returns for each crossing the seconds until each broker stopped producers, and until each released them."""
    measure = _delays_from_jmx if contender is Contender.STRIMZI else _delays_from_logs
    stops, openings = [], []
    with brokers(contender, 3, HEADROOM) as cluster:
        ballast = Path(cluster.brokers[0].directory.parent, "ballast")
        for _ in range(crossings):
            stops.append(_cross(cluster, True, lambda: _write_ballast(cluster, ballast), measure))
            openings.append(_cross(cluster, False, ballast.unlink, measure))
    return stops, openings


def _cross(cluster: Cluster, to_stop: bool, act: Callable[[], None], measure: Measure) -> Delays:
    time.sleep(random.uniform(*PAUSES))
    ends = {node.node_id: node.log.end() for node in cluster.brokers}
    crossed = time.time()
    act()
    return measure(cluster, to_stop, crossed, ends)


def _write_ballast(cluster: Cluster, ballast: Path) -> None:
    """Writes a file that takes the disk beyond the limit immediately."""
    node = cluster.brokers[0]
    size = free_bytes(node.directory) - min_free(node) + OVER
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _delays_from_logs(cluster: Cluster, to_stop: bool, crossed: float, ends: dict[int, int]) -> Delays:
    """Reads the delays from the brokers' logs, to a millisecond and without any load on the brokers."""
    wanted = "OPEN -> PAUSE" if to_stop else "PAUSE -> OPEN"

    def transition_line(node: KafkaNode) -> str:
        lines = node.log_text(ends[node.node_id]).splitlines()
        return next((line for line in lines if wanted in line), "")

    eventually(lambda: all(transition_line(node) for node in cluster.brokers), what=wanted)
    stamps = (transition_line(node)[1:].partition("]")[0] for node in cluster.brokers)
    return [datetime.strptime(stamp, _STAMP).timestamp() - crossed for stamp in stamps]


def _delays_from_jmx(cluster: Cluster, to_stop: bool, crossed: float, _: dict[int, int]) -> Delays:
    """Reads the delays by JMX, to about 0.1 s."""
    found: dict[int, float] = {}

    def all_did() -> bool:
        for node in cluster.brokers:
            if node.node_id not in found and is_stopped(node) is to_stop:
                found[node.node_id] = time.time() - crossed
        return len(found) == len(cluster.brokers)

    eventually(all_did, poll=0.01)
    return [found[node.node_id] for node in cluster.brokers]


def _row(what: str, seconds: Delays) -> list[str]:
    p50, p99 = statistics.median(seconds), sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1]
    return [what, str(len(seconds)), f"{p50:.2f}", f"{p99:.2f}", f"{max(seconds):.2f}"]


def main(crossings: int | None = None) -> str:
    """Returns a Markdown table: quotahost with default periods, Strimzi's plugin with its shortest."""
    rows = []
    for contender, usual in CROSSINGS.items():
        stops, openings = run(contender, crossings or usual)
        name = f"{contender}, looks every {CHECK_INTERVAL} s" if contender is Contender.STRIMZI else "quotahost"
        rows += [
            _row(f"{name}: limit to stop, the broker itself", [each[0] for each in stops]),
            _row(f"{name}: limit to stop, all three", [max(each) for each in stops]),
            _row(f"{name}: space to go, all three", [max(each) for each in openings]),
        ]
    return table(["seconds", "crossings", "p50", "p99", "longest"], rows)
