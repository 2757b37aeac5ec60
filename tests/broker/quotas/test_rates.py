"""Real clients get the rates that Python decides, from the first request on and whatever client-ids they claim."""

import time
from collections.abc import Iterator

import pytest

from harness.clients.consumer import ConsumerLoad
from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad, fill_topic
from harness.clients.raw import RawClient, introduce_clients, record_batch
from harness.kafka.admin import create_topic, set_quota
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node
from tests.broker.support.seen import ANYONE, gauge, limit_of, wait_for_rate

STATIC = 1e6
USERS = {"alice": "a", "bob": "b", "admin": "c"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"static.produce": "1M", "static.fetch": "3M", "static.excluded.principal.name.list": "User:admin"}
    more = {"users": USERS, "properties": dict(QUICK_QUOTAS), "log_dirs": 2, "heap": "256m"}
    with callback_node(tmp_path_factory.mktemp("node"), settings | {"static.scope": "user"}, **more) as node:
        create_topic(node, "t", partitions=2)
        fill_topic(node.client_config("admin", "filler"), "t", 30_000_000)
        yield node


@pytest.mark.proves("kip-13.slowed-not-refused", "kip-13.throttle-time-field")
def test_a_producer_and_a_consumer_get_their_static_rates_and_see_throttle_times(node: KafkaNode) -> None:
    producer, consumer = ProducerLoad(node.client_config("bob", "p"), "t"), ConsumerLoad(node.client_config("bob"), "t")
    begin = time.monotonic()
    with producer, consumer:
        wait_for_rate(pytest.approx(STATIC, rel=0.1), producer, since=begin)
        # With windows this short a consumer gets less than its quota; see wait_for_rate.
        wait_for_rate(pytest.approx(0.8 * 3e6, rel=0.35), consumer, since=begin)
    assert producer.max_throttle() > 0
    assert consumer.max_throttle() > 0
    assert producer.errors == []


def test_only_what_changed_is_published_again(node: KafkaNode) -> None:
    before = gauge(node, "QuotaTable", "Changes")
    set_quota(node, {"producer_byte_rate": 7e6}, user="bob", client_id="p")
    eventually(lambda: limit_of(node, "bob", "p") == 7e6)
    eventually(lambda: gauge(node, "QuotaTable", "Changes") == before + 1)


@pytest.mark.proves("faults.names")
def test_rotating_client_ids_share_the_quota_of_their_user(node: KafkaNode) -> None:
    introduce_clients(node, ["first"])
    eventually(lambda: limit_of(node, ANYONE, "whatever") == STATIC)
    misses, batch, number = gauge(node, "QuotaTable", "Misses"), record_batch(900_000), 0
    with RawClient(node, "rotating") as client:
        while client.produce("t", batch).throttle_ms == 0:
            number += 1
            assert number < 9, "Kafka's window of 1 MB/s is used up by all of them together"
            client.rename(f"rotating-{number}")
    # The broker's own clients may be missed meanwhile; each of these would be at least twice.
    assert gauge(node, "QuotaTable", "Misses") - misses <= number, "nobody had to be asked about any of them"
    assert {q.tags["client-id"] for q in enforced_quotas(node, "PRODUCE", user=ANYONE)} == {""}


@pytest.mark.proves("faults.names")
def test_client_ids_of_32_kb_cost_the_broker_nothing_that_stays(node: KafkaNode) -> None:
    before = gauge(node, "QuotaTable", "Clients")
    assert introduce_clients(node, (f"{number:032000}" for number in range(1_500))) == 1_500
    assert gauge(node, "QuotaTable", "Clients") <= before + 1, "all of them are one"
    assert "OutOfMemoryError" not in node.log_text()


def test_stored_quotas_apply_from_the_first_request_after_a_clean_restart(node: KafkaNode) -> None:
    set_quota(node, {"producer_byte_rate": 6e6}, user="alice", client_id="stored")
    assert node.stop() == 143
    for directory in node.data_dirs:
        assert (directory / ".kafka_cleanshutdown").exists()
    assert "did not end within" not in node.log_text()
    node.start()
    with ProducerLoad(node.client_config("alice", "stored"), "t"):
        found = eventually(lambda: enforced_quotas(node, "PRODUCE", user="alice", client_id="stored"))
    assert {quota.bound for quota in found} == {6e6}
