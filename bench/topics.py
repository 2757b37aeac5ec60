"""Measures what topic quotas cost a broker with many topics, and how soon they know the topics, beside a stock broker.

Both brokers get the same topics, one record to each, and then nothing: what a broker uses of the CPU is what it needs
to look. ``quotahost-topics`` reads the meter of all topics while the broker takes in little, and each topic's meter
near the threshold; so both are measured. Without the fence nothing would be turned back. It wraps Kafka's own
authorizer unless ``fence.authorizer=none``, as here, where everybody may do everything.
"""

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.markdown import machine_line, table
from bench.names import live_heap
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, plugin_properties
from harness.system.process import thread_cpu_seconds
from harness.system.waiting import eventually

TOPICS: Final = 2_000
TOTAL: Final = "topics.total.bytes.in.per.sec.threshold"
FAR: Final = 1_000_000_000  # bytes/s: the broker takes in next to nothing of it
SETTLED: Final = 10.0  # seconds after the last record, for the JVM's compilers
IDLE: Final = 20.0  # seconds
THREAD: Final = "quotahost-topics"
_QUOTAS: Final = "quotahost:type=TopicQuotas"


class Cost(NamedTuple):
    """What was measured: seconds, shares of a core, MB. Of a stock broker some are NaN."""

    created: float  # until a client sees the leaders of all topics
    listed: float  # until the topic quotas know all of them, after the last record
    far: float  # CPU of the process while the broker takes in little
    near: float  # CPU of the process while the broker takes in more than its threshold
    thread_far: float
    thread_near: float
    heap: float
    resident: float


@contextmanager
def running(quotahost: bool) -> Iterator[KafkaNode]:
    """A broker without topics."""
    settings = {"fence.authorizer": "none", TOTAL: str(FAR)}
    properties = plugin_properties(settings) | FENCE if quotahost else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaNode(Path(folder), classpath=[JAR], properties=properties, heap="1g", jvm_options=()) as node,
    ):
        yield node


def measure(quotahost: bool, topics: int = TOPICS) -> Cost:
    """The figures of one broker."""
    with running(quotahost) as node:
        Jmx(node).get("java.lang:type=Runtime", "Uptime")  # the management agent takes memory, on both brokers alike
        names = [f"topic-{number}" for number in range(topics)]
        created = _create(node, names)
        _write(node, names)
        listed = _listed(node, topics) if quotahost else math.nan
        time.sleep(SETTLED)
        far, thread_far = _idle(node)
        near, thread_near = _near(node) if quotahost else (math.nan, math.nan)
        return Cost(created, listed, far, near, thread_far, thread_near, live_heap(node), node.rss() / 1e6)


def _create(node: KafkaNode, names: list[str]) -> float:
    began, admin = time.monotonic(), AdminClient(node.client_config(client_id="harness"))
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in names], request_timeout=120).values():
        created.result(120)

    def seen() -> bool:
        found = admin.list_topics(timeout=60).topics
        return all(name in found and found[name].partitions[0].leader >= 0 for name in names)

    eventually(seen, what="leaders of all topics", poll=0.2)
    return time.monotonic() - began


def _write(node: KafkaNode, names: list[str]) -> None:
    producer = Producer(node.client_config(client_id="writer"))
    for name in names:
        producer.produce(name, b"x" * 100)
    assert producer.flush(120) == 0


def _listed(node: KafkaNode, topics: int) -> float:
    """Seconds until each topic has its share of the total, and no more."""
    began = time.monotonic()
    eventually(lambda: Jmx(node).get(_QUOTAS, "Share") < FAR / topics * 1.000001, what="all topics known", poll=0.02)
    return time.monotonic() - began


def _near(node: KafkaNode) -> tuple[float, float]:
    """The same as :func:`_idle` while every topic's meter is read: what was written is over a total of one byte."""
    alter_broker_config(node, {PREFIX + TOTAL: "1"})
    eventually(lambda: Jmx(node).get(_QUOTAS, "Threshold") == 1, what="the threshold is low")
    return _idle(node)


def _idle(node: KafkaNode) -> tuple[float, float]:
    """The shares of a core that the process uses, and its thread of the topic quotas."""
    process, thread, began = node.cpu_seconds(), thread_cpu_seconds(node.pid, THREAD), time.monotonic()
    time.sleep(IDLE)
    seconds = time.monotonic() - began
    used = thread_cpu_seconds(node.pid, THREAD) - thread
    return (node.cpu_seconds() - process) / seconds, used / seconds


def main(topics: int = TOPICS) -> str:
    """A Markdown table with a column for each broker."""
    own, stock = measure(True, topics), measure(False, topics)
    rows = [
        ["until a client sees all leaders, s", *_both(own.created, stock.created, 1)],
        ["until topic quotas know all topics, s", *_both(own.listed, stock.listed, 1)],
        ["CPU far below the threshold, % of a core", *_both(own.far * 100, stock.far * 100, 1)],
        ["of it `quotahost-topics`", *_both(own.thread_far * 100, math.nan, 1)],
        ["CPU above the threshold, % of a core", *_both(own.near * 100, stock.near * 100, 1)],
        ["of it `quotahost-topics`", *_both(own.thread_near * 100, math.nan, 1)],
        ["live heap, MB", *_both(own.heap, stock.heap, 0)],
        ["resident, MB", *_both(own.resident, stock.resident, 0)],
    ]
    return table([f"{topics:,} topics", "quotahost", "stock"], rows) + "\n\n" + machine_line()


def _both(own: float, stock: float, digits: int) -> tuple[str, str]:
    own_text, stock_text = ("" if math.isnan(value) else f"{value:,.{digits}f}" for value in (own, stock))
    return own_text, stock_text


if __name__ == "__main__":
    import sys

    print(main(*map(int, sys.argv[1:])))
