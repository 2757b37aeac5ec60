"""Reads the quota table, the metrics and the state of a broker with quotahost, and waits for them to change."""

import math
import time
from typing import Final
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from harness.clients.load import QUICK_WINDOW, Load
from harness.java.jmx import Jmx
from harness.kafka.admin_socket import quota_now
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX
from harness.system.waiting import eventually

ANYONE: Final = "ANONYMOUS"
OPEN, THROTTLE, PAUSE = 0, 1, 2  # values of the gauge State


def wait_for_watch_topic(node: KafkaNode) -> None:
    """Waits until a new broker has created the topic by which ``quotahost top`` asks brokers."""
    eventually(lambda: [each for where in node.data_dirs for each in where.glob("__quotahost_watch-*")])


def gauge(node: KafkaNode, bean: str, attribute: str) -> float:
    """One metric of quotahost; the bean is named as in ``QuotaTable`` or ``Plugin,name=static``."""
    return float(Jmx(node).get(f"quotahost:type={bean}", attribute))


def causes(node: KafkaNode) -> str:
    """The gauges that say why the broker's factor is below 1."""
    return str(Jmx(node).query("quotahost:type=Cause,*"))


def transitions(*nodes: KafkaNode) -> list[float]:
    """The number of state changes of each broker."""
    return [gauge(node, "Factor", "Transitions") for node in nodes]


def silent_for(node: KafkaNode, broker: KafkaNode, seconds: float) -> None:
    """Waits until the latest snapshot of ``broker`` that ``node`` knows is older than this."""
    eventually(lambda: gauge(node, f"Snapshot,name={broker.node_id}", "Age") > seconds, timeout=seconds + 120)


def scrape(node: KafkaNode) -> list[Sample]:
    """The samples that the endpoint ``metrics.port`` shows."""
    with urlopen(f"http://127.0.0.1:{node.properties[PREFIX + 'metrics.port']}/metrics") as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    return [sample for family in families for sample in family.samples]


def bytes_in(node: KafkaNode, topic: str) -> int:
    """The bytes that clients, not followers, have written to a topic, by Kafka's own meter; 0 before the first."""
    beans = Jmx(node).query(f"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic={topic}")
    return sum(int(bean["Count"]) for bean in beans.values())


def limit_of(node: KafkaNode, principal: str, client_id: str) -> float:
    """A client's limit for PRODUCE in bytes/s; NaN, which equals no number, while there is no limit."""
    limit = quota_now(node, principal, client_id).limit
    return math.nan if limit is None else limit


def wait_for_rate(expected: object, *loads: Load, since: float | None = None) -> None:
    """Waits until the loads' mean bytes/s over the last three windows of QUICK_QUOTAS equals ``expected`` (``approx``).

    The windows begin at ``since`` (monotonic) or now. Kafka lets a client use up a window's bytes at once, and a busy
    machine may stall. So the mean is a smooth one (``Meter.smooth_rate``), computed repeatedly until it fits.

    An eager producer's mean is 97 to 101% of its quota. An eager consumer's is 65 to 90%: Kafka takes back the charge
    of a throttled fetch but not the wait, which is a second too long in each window.
    """
    begin, span = since or time.monotonic(), 3 * QUICK_WINDOW

    def rate_is_met() -> bool:
        now = time.monotonic()
        assert now >= begin + span, "three windows must pass first"
        assert sum(load.meter.smooth_rate(now - span, now) for load in loads) == expected
        return True

    eventually(rate_is_met, poll=0.2)


def has_own_quota(node: KafkaNode, principal: str, client_id: str) -> bool:
    """Whether the client has a quota of its own."""
    return not quota_now(node, principal, client_id).newcomer


def state(node: KafkaNode) -> float:
    """The broker's state: OPEN, THROTTLE or PAUSE."""
    return gauge(node, "QuotaTable", "State")


def wait_for_state(cluster: Cluster, wanted: int, but: KafkaNode | None = None) -> None:
    """Waits until every broker, except ``but``, is in the wanted state: OPEN, THROTTLE or PAUSE."""
    nodes = [node for node in cluster.brokers if node is not but]
    eventually(lambda: all(state(node) == wanted for node in nodes), what=f"all brokers have the state {wanted}")
