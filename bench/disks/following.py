"""Measures how soon another broker's set of affected topics follows what happens on a full volume.

Broker 1 is above its soft limit by its settings, the two others never are. Topics come to its log directory and leave
it: new, deleted, and by reassignment. Each time runs from the moment at which the directory of the replica is there or
gone, until the cause of the factor on broker 3, which reads snapshots alone, counts one topic more or fewer. A change
of the leader alone is not among them: the set is of topics, so it stays as it is.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.markdown import machine_line, table
from harness.java.jmx import Jmx
from harness.kafka.admin import delete_topics, place_topics, reassign
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.waiting import eventually
from quotahost.broker.disks.topics import topics

RUNS: Final = 20  # topics
NEVER: Final = 10**15  # bytes used
_COUNT: Final = re.compile(r"for writers of ([\d,]+) topics?")
_POLL: Final = 0.01  # seconds


@contextmanager
def _cluster() -> Iterator[Cluster]:
    settings = {"factor.source": "snapshots", "factor.scope": "topics", "fence.authorizer": "none"}
    with tempfile.TemporaryDirectory(prefix="quotahost-bench-") as folder:
        cluster = Cluster(Path(folder), classpath=[JAR], heap="256m")
        for node in cluster.brokers:
            soft = 1 if node is cluster.brokers[0] else NEVER
            limits = {"static.storage.soft": str(soft), "static.storage.hard": str(NEVER)}
            node.properties = plugin_properties(settings | limits) | FENCE
        with cluster:
            try:
                yield cluster
            finally:
                cluster.kill()  # quicker than a clean stop, and nobody needs the data


def affected(node: KafkaNode) -> int:
    """How many topics the factor in force on a broker is for; -1 while it is for all clients."""
    found = _COUNT.search(str(Jmx(node).query("quotahost:type=Cause,*")))
    return int(found[1].replace(",", "")) if found else -1


def measure(runs: int = RUNS) -> dict[str, list[float]]:
    """Seconds by what happened to a topic."""
    found: dict[str, list[float]] = {}
    with _cluster() as cluster:
        for number in range(runs):
            for what, change in _life(cluster, f"topic-{number}"):
                found.setdefault(what, []).append(_follows(cluster, f"topic-{number}", change))
    return found


def _life(cluster: Cluster, topic: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """What happens to a topic, each time followed by broker 1's directory of it coming or going."""
    yield "a new topic", lambda: place_topics(cluster, {topic: [1, 2]})
    yield "a replica moved away", lambda: reassign(cluster, topic, [2, 3])
    yield "a replica moved there", lambda: reassign(cluster, topic, [2, 1])
    yield "a deleted topic", lambda: delete_topics(cluster, topic)


def _follows(cluster: Cluster, topic: str, change: Callable[[], None]) -> float:
    """Seconds from the coming or going of the topic's directory on broker 1 to the new count on broker 3."""
    directory, last = cluster.brokers[0].data_dirs[0] / f"{topic}-0", cluster.brokers[2]
    parent, there = str(directory.parent), directory.exists()
    eventually(lambda: affected(last) == len(topics([parent]) or ()), 60, "broker 3 knows broker 1's directories")
    before = affected(last)
    wanted = before - 1 if there else before + 1
    with ThreadPoolExecutor() as pool:
        happened = pool.submit(_when, lambda: directory.exists() is not there)
        known = pool.submit(_when, lambda: affected(last) == wanted)
        change()
        return known.result() - happened.result()


def _when(condition: Callable[[], bool]) -> float:
    """The moment at which the condition was seen to be true."""
    eventually(condition, 60, poll=_POLL)
    return time.monotonic()


def main() -> str:
    """A Markdown table."""
    found = measure()
    rows = [[what, str(len(each)), *_seconds(each)] for what, each in found.items()]
    return table(["on the full volume", "n", "median, s", "most, s"], rows) + "\n\n" + machine_line()


def _seconds(each: list[float]) -> tuple[str, str]:
    return f"{statistics.median(each):.2f}", f"{max(each):.2f}"
