"""A client's rate is the same wherever it is shown: all numbers agree with Kafka's own MBean within 5 %."""

from collections.abc import Iterator
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import create_topic, unregister_broker
from harness.kafka.node import KafkaNode
from harness.system.ports import free_port
from harness.system.waiting import eventually
from quotahost.records.usage import decode
from tests.broker.support.commands import Terminal, explain_client, field, top
from tests.broker.support.node import callback_node
from tests.broker.support.numbers import records
from tests.broker.support.quotas import set_cluster_quota
from tests.broker.support.seen import ANYONE, scrape, wait_for_watch_topic

CLIENT: Final = "steady"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker with Kafka's default quota windows: over 11 s a steady client's rate hardly changes."""
    settings = {"supplier": "cluster-quota", "metrics.port": str(free_port())}
    with callback_node(tmp_path_factory.mktemp("node"), settings) as node:
        create_topic(node, "t")
        set_cluster_quota(node.client_config(), client_id=CLIENT, produce=3e6)
        yield node


def rates(node: KafkaNode) -> dict[str, float]:
    """The client's rate in bytes/s, by where it is shown."""

    def in_top(*whose: object) -> float:
        (rate,) = (row["rate"] for row in top(*whose, "--type", "PRODUCE")["rows"] if row["client_id"] == CLIENT)
        return float(rate)

    bean = f"kafka.server:type=Produce,user={ANYONE},client-id={CLIENT}"
    series = {tuple(each.labels.values()): each.value for each in scrape(node) if each.name == "quotahost_client_rate"}
    usages = [decode(key, value) for key, value in records(node, "__quotahost_usage")]
    return {
        "Kafka's MBean": float(Jmx(node).get(bean, "byte-rate")),
        "JMX": Jmx(node).get("quotahost:type=Clients", "Uses")[f"[{ANYONE}, {CLIENT}, client, PRODUCE]"]["Rate"],
        "explain": float(field(explain_client(node, ANYONE, CLIENT)[1], "measured").split()[0].replace(",", "")),
        "top": in_top("--pid", node.pid),
        "top of the cluster": in_top("--bootstrap", node.bootstrap),
        "metrics": next(rate for labels, rate in series.items() if {CLIENT, "PRODUCE"} <= set(labels)),
        # The latest record of publish-usage; the pipeline's report and history are made from these records.
        "usage": [each.rate for usage in usages for each in usage.clients if each.key.client_id == CLIENT][-1],
    }


def test_a_client_has_the_same_rate_wherever_it_is_shown(node: KafkaNode) -> None:
    with ProducerLoad(node.client_config(client_id=CLIENT), "t", rate=1e6) as load:
        eventually(lambda: load.meter.bytes > 12e6, what="the windows are full")

        def agree() -> bool:
            try:
                found = rates(node)
            except (LookupError, ValueError, StopIteration):
                return False  # one of the places doesn't show the client yet
            assert max(found.values()) <= 1.05 * min(found.values()), found
            return True

        eventually(agree)


def test_a_live_top_of_the_cluster_outlives_its_brokers(node: KafkaNode) -> None:
    wait_for_watch_topic(node)
    with Terminal("top", "--bootstrap", node.bootstrap) as terminal:
        terminal.shows("1 of 1 brokers")
        # A broker that has just started may list no broker, not even itself: librdkafka then knows none, and asks none.
        unregister_broker(node, 1)
        terminal.press(b"s")
        terminal.shows("no broker answers")
        node.kill()  # SIGTERM would wait for the controller, which no longer knows the broker
        node.start()
        terminal.press(b"n")
        with ProducerLoad(node.client_config(client_id="later"), "t", rate=100_000):
            terminal.shows("later")
        terminal.press(b"q")
        assert terminal.ends() == 0
