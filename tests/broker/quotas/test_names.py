"""A client-id is only a claim: rotating and very long ones, and an exempt client whom a full table has no place for."""

from collections.abc import Iterator

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.clients.raw import RawClient, introduce_clients, record_batch
from harness.kafka.admin import create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node, changed
from tests.broker.support.seen import ANYONE, gauge, limit_of

RATE = 1e6
USERS = {"root": "a", "alice": "b", "bob": "c"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {
        "static.produce": "1M",
        "static.scope": "user",
        "clients.max": "2",
        "static.excluded.principal.name.list": "User:root",
    }
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, settings, users=USERS, properties=dict(QUICK_QUOTAS), heap="256m") as node:
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


def test_an_exempt_client_is_exempt_though_the_table_is_full(node: KafkaNode) -> None:
    with ProducerLoad(node.client_config("alice", "p"), "t", rate=1e5):
        eventually(lambda: gauge(node, "QuotaTable", "Clients") == 2)
    with changed(node, {"newcomers.produce": "1M"}):
        eventually(lambda: limit_of(node, "bob", "p") == RATE, what="the rate of who has no place")
        with ProducerLoad(node.client_config("root", "p"), "t", rate=6e6) as load:
            eventually(lambda: load.meter.bytes > 20e6, what="what no other client would get")
    assert load.max_throttle() == 0
    assert [q.bound for q in enforced_quotas(node, "PRODUCE", user="<exempt>")] == [None]
    assert gauge(node, "QuotaTable", "Clients") == 2


def test_rotating_client_ids_share_the_newcomers_quota_where_each_would_have_one_of_its_own(node: KafkaNode) -> None:
    newcomers = f"<newcomers {ANYONE}>"
    with changed(node, {"static.scope": "client", "newcomers.produce": "1M"}):
        # For some seconds they keep the user's quota, which all of them had.
        eventually(lambda: max(throttled(node, "each")) > 0 and quota_now(node, ANYONE, "x").user == newcomers)
        assert limit_of(node, ANYONE, "x") == RATE
        assert [q.bound for q in enforced_quotas(node, "PRODUCE", user=newcomers)] in ([RATE], [])
    eventually(lambda: quota_now(node, ANYONE, "x").user == ANYONE)
