"""Nodes that run quotahost's callback, and readers of their quota table and metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from harness.clients.consumer import ConsumerLoad
from harness.clients.load import QUICK_QUOTAS, QUICK_WINDOW, Load
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import CALLBACK, FENCE, JAR, PREFIX, plugin_properties
from harness.system.waiting import eventually

PLUGINS: Final = Path(__file__).parents[1] / "plugins"
ANYONE: Final = "ANONYMOUS"
OPEN, THROTTLE, PAUSE = 0, 1, 2  # values of the gauge State
FACTOR: Final = PREFIX + "plugin.fixed.factor"
#: Settings of a broker with a fence whose factor tests set by hand.
FIXED: Final = {
    "factor.source": "fixed",
    "factor.interval": "100ms",
    "plugin.fixed.factor": "1",
    "fence.authorizer": "none",
}


def callback_properties(settings: dict[str, str] | None = None, name: str = CALLBACK) -> dict[str, str]:
    """Broker properties that load the callback; the settings have no prefix."""
    return plugin_properties({"static.scope": "client", **(settings or {})}, name)


def callback_node(directory: Path, settings: dict[str, str] | None = None, **more: Any) -> KafkaNode:
    """A node with the callback and the quota probe; it is not started."""
    properties = callback_properties(settings) | more.pop("properties", {})
    return KafkaNode(directory, classpath=[JAR], properties=properties, probe=True, **more)


@contextmanager
def cluster_with_fence(directory: Path, settings: dict[str, str]) -> Iterator[Cluster]:
    """Runs three brokers with callback, fence and quick quotas, and a topic t of three partitions."""
    properties = callback_properties(settings) | dict(QUICK_QUOTAS) | FENCE
    with Cluster(directory, brokers=3, classpath=[JAR], properties=properties, probe=True) as cluster:
        create_topic(cluster.brokers[0], "t", partitions=3)
        yield cluster


def restart_stopped(cluster: Cluster) -> None:
    """Starts the brokers that a test has stopped."""
    for node in cluster.brokers:
        if not node.running:
            node.start()


def wait_for_watch_topic(node: KafkaNode) -> None:
    """Waits until a new broker has made the topic by which ``quotahost top`` asks it."""
    eventually(lambda: [each for where in node.data_dirs for each in where.glob("__quotahost_watch-*")])


def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic's name made of the test's name, with a dash for each character that topics don't allow."""
    return "".join(char if char.isalnum() else "-" for char in request.node.name)


def gauge(node: KafkaNode, bean: str, attribute: str) -> float:
    """One metric of quotahost; the bean is named as in ``QuotaTable`` or ``Plugin,name=static``."""
    return float(Jmx(node).get(f"quotahost:type={bean}", attribute))


def causes(node: KafkaNode) -> str:
    """Why the broker's factor is below 1, in its gauges' words."""
    return str(Jmx(node).query("quotahost:type=Cause,*"))


def transitions(*nodes: KafkaNode) -> list[float]:
    """How often each of the brokers has changed its state."""
    return [gauge(node, "Factor", "Transitions") for node in nodes]


def silent_for(node: KafkaNode, broker: KafkaNode, seconds: float) -> None:
    """Waits until a broker's newest snapshot, as another broker knows it, is so old."""
    eventually(lambda: gauge(node, f"Snapshot,name={broker.node_id}", "Age") > seconds, timeout=seconds + 120)


def scrape(node: KafkaNode) -> list[Sample]:
    """What the endpoint ``metrics.port`` shows."""
    with urlopen(f"http://127.0.0.1:{node.properties[PREFIX + 'metrics.port']}/metrics") as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    return [sample for family in families for sample in family.samples]


def bytes_in(node: KafkaNode, topic: str) -> int:
    """Bytes that clients, not replication, have brought to a topic, by Kafka's own meter; 0 before the first."""
    beans = Jmx(node).query(f"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic={topic}")
    return sum(int(bean["Count"]) for bean in beans.values())


def tell(file: Path, text: str) -> None:
    """Gives a plugin's file this text; the plugin may read it at any moment."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(text)
    new.replace(file)


def check_serves(node: KafkaNode, client_id: str) -> None:
    """Checks that a client with this client-id produces to topic t and consumes, faster than a muted client could."""
    config = node.client_config(client_id=client_id)
    with ProducerLoad(config, "t") as producer, ConsumerLoad(config, "t") as consumer:
        eventually(lambda: producer.meter.bytes > 2_000_000, what="produced")
        eventually(lambda: consumer.meter.bytes > 2_000_000, what="consumed")
    assert producer.errors == consumer.errors == []


def table_row(node: KafkaNode, principal: str, client_id: str, quota_type: str = "PRODUCE") -> dict[str, str]:
    """A client's row in the table: user, client_id, base, limit, the state known or newcomer, slowed, supplier."""
    quota = quota_now(node, principal, client_id, quota_type)
    return {
        "user": quota.user, "client_id": quota.client_id, "base": _number(quota.base), "limit": _number(quota.limit),
        "state": "newcomer" if quota.newcomer else "known", "slowed": str(quota.slowed), "supplier": quota.supplier,
    }  # fmt: skip


def _number(rate: float | None) -> str:
    return "null" if rate is None else str(float(rate))


def limit_of(node: KafkaNode, principal: str, client_id: str) -> float:
    """A client's limit of produce, in bytes/s; NaN, which equals nothing, while there is none."""
    return float(table_row(node, principal, client_id)["limit"].replace("null", "nan"))


def wait_for_rate(expected: object, *loads: Load, since: float | None = None) -> None:
    """Waits until the loads' mean bytes/s over the last three windows of QUICK_QUOTAS equals ``expected`` (``approx``).

    The windows begin at ``since`` (monotonic) or now. Kafka lets a client use up a window's bytes at once, and a busy
    machine may stall; so the mean is a smooth one (``Meter.smooth_rate``), taken again and again until it fits.

    By it an eager producer gets 97 to 101% of its quota. An eager consumer gets 65 to 90%: Kafka takes back the charge
    of a throttled fetch but not the wait, which is a second too long in each window.
    """
    begin, span = since or time.monotonic(), 3 * QUICK_WINDOW

    def rate_is_met() -> bool:
        now = time.monotonic()
        assert now >= begin + span, "three windows have not passed yet"
        assert sum(load.meter.smooth_rate(now - span, now) for load in loads) == expected
        return True

    eventually(rate_is_met, poll=0.2)


def set_factor(node: KafkaNode, factor: float) -> None:
    """Sets the factor of a broker with FIXED settings, and waits until host and fence go by it."""
    alter_broker_config(node, {FACTOR: f"{factor:g}"})
    eventually(lambda: gauge(node, "QuotaTable", "Factor") == factor)
    eventually(lambda: gauge(node, "Fence", "Closed") == (factor == 0))


def has_own_quota(node: KafkaNode, principal: str, client_id: str) -> bool:
    """Whether the client has a quota of its own."""
    return table_row(node, principal, client_id)["state"] == "known"


def state(node: KafkaNode) -> float:
    """The broker's state: OPEN, THROTTLE or PAUSE."""
    return gauge(node, "QuotaTable", "State")


def wait_for_state(cluster: Cluster, wanted: int, but: KafkaNode | None = None) -> None:
    """Waits until every broker, except ``but``, is in the wanted state: OPEN, THROTTLE or PAUSE."""
    nodes = [node for node in cluster.brokers if node is not but]
    eventually(lambda: all(state(node) == wanted for node in nodes), what=f"state {wanted} on all")
