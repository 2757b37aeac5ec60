"""A client-id is only a claim: rotating and very long ones."""

from collections.abc import Iterator

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.raw import RawClient, introduce_clients, record_batch
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node
from tests.broker.support.seen import ANYONE, gauge, limit_of

RATE = 1e6


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"static.produce": "1M", "static.scope": "user", "clients.max": "2"}
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, settings, properties=dict(QUICK_QUOTAS), heap="256m") as node:
        create_topic(node, "t")
        introduce_clients(node, ["first"])
        eventually(lambda: limit_of(node, ANYONE, "whatever") == RATE)
        yield node


def throttled(node: KafkaNode, name: str) -> list[int]:
    """The throttle times in ms of requests of 0.9 MB, each with another client-id, up to the first that is above 0."""
    batch = record_batch(900_000)
    times = []
    with RawClient(node, name) as client:
        for number in range(9):
            client.rename(f"{name}-{number}")
            times.append(client.produce("t", batch).throttle_ms)
            if times[-1]:
                break
    return times


@pytest.mark.proves("faults.names")
def test_rotating_client_ids_share_the_quota_of_their_user(node: KafkaNode) -> None:
    misses = gauge(node, "QuotaTable", "Misses")
    times = throttled(node, "rotating")
    assert max(times) > 0, "Kafka's window of 1 MB/s is used up by all of them together"
    # The broker's own clients may be missed meanwhile; each of these would be at least twice.
    assert gauge(node, "QuotaTable", "Misses") - misses < len(times), "nobody had to be asked about any of them"
    assert {q.tags["client-id"] for q in enforced_quotas(node, "PRODUCE", user=ANYONE)} == {""}


@pytest.mark.proves("faults.names")
def test_client_ids_of_32_kb_cost_the_broker_nothing_that_stays(node: KafkaNode) -> None:
    assert introduce_clients(node, (f"{number:032000}" for number in range(1_500))) == 1_500
    assert gauge(node, "QuotaTable", "Clients") <= 2, "all of them are one; the broker's own may be there, too"
    assert "OutOfMemoryError" not in node.log_text()
