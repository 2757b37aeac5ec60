"""A factor that moves leaves the broker's log readable, however many clients there are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.raw import RawClient, record_batch
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from tests.broker.support.node import PLUGINS, callback_node, tell
from tests.broker.support.seen import gauge

CLIENTS = 500
BATCH = record_batch(100)
KAFKAS_LINE = "already exists. Setting quota to"  # ClientQuotaManager.updateQuotaMetricConfigs
OUR_LINE = "Kafka has taken over changed limits"


@pytest.fixture(scope="module")
def factor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("factor") / "factor"
    file.write_text("1")
    return file


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, factor: Path) -> Iterator[KafkaNode]:
    """A broker with CLIENTS clients, each with a sensor of its own."""
    settings = {"supplier": "client-quotas,static", "static.produce": "1G", "max.mute": "1h"}
    settings |= {"factor.source": "from-file", "factor.interval": "100ms"}
    env = {"PYTHONPATH": str(PLUGINS), "FAULT": "/dev/null", "FACTOR": str(factor)}
    # With Kafka's own windows each step of the factor takes eleven seconds.
    quick = dict(QUICK_QUOTAS)
    with callback_node(tmp_path_factory.mktemp("node"), settings, properties=quick, env=env) as node:
        create_topic(node, "t")
        produce_as_each(node)
        eventually(lambda: gauge(node, "QuotaTable", "Clients") >= CLIENTS, what="a place for each client")
        produce_as_each(node)
        yield node


def produce_as_each(node: KafkaNode) -> None:
    with RawClient(node, None) as client:
        for number in range(CLIENTS):
            client.rename(f"client-{number}")
            client.produce("t", BATCH)


def test_a_factor_that_goes_down_and_up_costs_less_than_200_lines(node: KafkaNode, factor: Path) -> None:
    begin = node.log.end()
    with RawClient(node, "client-0") as client:
        for tenths in (5, 1, 10):  # each changes the limits of all clients
            tell(factor, f"{tenths / 10:g}")
            eventually(
                lambda at=tenths / 10: gauge(node, "QuotaTable", "LimitFactor") == pytest.approx(at), what="the limits"
            )
            client.produce("t", BATCH)  # its thread reads the limits of all clients again
    eventually(lambda: OUR_LINE in node.log.text(begin), what="the line in place of Kafka's")
    lines = node.log.text(begin).splitlines()
    assert len(lines) < 200
    assert not [line for line in lines if KAFKAS_LINE in line]
