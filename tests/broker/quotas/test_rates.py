"""Real clients get the rates that Python decides: static rates, client quotas, live changes, exemptions.

What a share group reads (KIP-932) is counted and delayed as other fetches are, by the quota of each member; and a
client-id is only a claim: rotating and very long ones.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.clients.consumer import ConsumerLoad
from harness.clients.load import QUICK_QUOTAS, QUICK_WINDOW
from harness.clients.producer import ProducerLoad, fill_topic
from harness.clients.raw import RawClient, introduce_clients, record_batch
from harness.java.helper import helper
from harness.kafka.admin import alter_config, create_topic, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node, changed
from tests.broker.support.seen import ANYONE, gauge, has_own_quota, limit_of, wait_for_rate

MEGA: Final = 1_000_000
STATIC: Final = 2 * MEGA
USERS: Final = {"alice": "a", "bob": "b", "admin": "c"}
LOCK: Final = "15000"  # ms for which a share group locks what it reads; Kafka's least is configured so, too


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"static.produce": "2M", "static.fetch": "3M", "static.excluded.principal.name.list": "User:admin"}
    properties = {"share.coordinator.state.topic.num.partitions": "2", "group.share.min.record.lock.duration.ms": LOCK}
    more = {"users": USERS, "properties": QUICK_QUOTAS | properties, "log_dirs": 2}
    with callback_node(tmp_path_factory.mktemp("node"), settings, **more) as node:
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


@pytest.mark.proves("kip-13.dynamic-config")
def test_a_client_that_is_connected_gets_a_quota_and_a_property_that_are_set_live_and_static_again_without_them(
    node: KafkaNode,
) -> None:
    def limited_to(rate: float) -> None:
        eventually(lambda: enforced_quotas(node, "PRODUCE", user="alice")[0].bound == rate)

    with ProducerLoad(node.client_config("alice", "live"), "t") as load:
        eventually(lambda: has_own_quota(node, "alice", "live"))
        set_quota(node, {"producer_byte_rate": 5e6}, user="alice", client_id="live")
        limited_to(5e6)
        eventually(lambda: load.meter.rate_over(2) > 1.5 * STATIC, what="it is quicker")
        set_quota(node, {"producer_byte_rate": None}, user="alice", client_id="live")
        limited_to(STATIC)
        with changed(node, {"static.produce": "4M"}):
            limited_to(4e6)
        limited_to(STATIC)
    assert load.errors == []


def test_only_what_changed_is_published_again(node: KafkaNode) -> None:
    before = gauge(node, "QuotaTable", "Changes")
    set_quota(node, {"producer_byte_rate": 7e6}, user="bob", client_id="p")
    eventually(lambda: limit_of(node, "bob", "p") == 7e6)
    assert gauge(node, "QuotaTable", "Changes") == before + 1


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


# ---- share groups ---------------------------------------------------------------------------------------------------


def read(node: KafkaNode, client_id: str, quota: int, seconds: int) -> dict[str, Any]:
    """What the member of a share group reads of 20 MB with this quota (bytes/s); see ShareReader.java."""
    topic = f"shared-{client_id}"
    create_topic(node, topic, partitions=2)
    fill_topic(node.client_config("admin", "filler"), topic, 20 * MEGA)
    set_quota(node, {"consumer_byte_rate": quota}, client_id=client_id)
    settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": LOCK}
    alter_config(node, "GROUP", client_id, settings)
    reader = {"bootstrap.servers": node.bootstrap, "group.id": client_id, "client.id": client_id}
    found: dict[str, Any] = helper(node.version).ask("measure-shared", topic, seconds, reader, timeout=seconds + 60)
    assert quota_now(node, ANYONE, client_id, "FETCH").limit == quota
    assert [each.bound for each in enforced_quotas(node, "FETCH", client_id=client_id)] == [quota]
    return found


@pytest.mark.long
def test_a_share_consumers_fetches_are_counted_and_delayed_by_its_own_quota(node: KafkaNode) -> None:
    quota, seconds = 1 * MEGA, 40
    found = read(node, "slow", quota, seconds)
    assert found["throttle"] > 0
    assert quota < found["bytes"] < quota * (seconds + QUICK_WINDOW)
    assert found["later"] > 0, "what a delayed answer would have held comes when its lock has run out"


@pytest.mark.long
def test_a_share_consumer_with_a_quota_that_it_does_not_reach_is_not_delayed(node: KafkaNode) -> None:
    found = read(node, "quick", 1000 * MEGA, 15)
    assert found["bytes"] == 20 * MEGA
    assert found["throttle"] == found["later"] == 0


# ---- client-ids -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"static.produce": "1M", "static.scope": "user", "clients.max": "2"}
    directory = tmp_path_factory.mktemp("small")
    with callback_node(directory, settings, properties=dict(QUICK_QUOTAS), heap="256m") as node:
        create_topic(node, "t")
        introduce_clients(node, ["first"])
        eventually(lambda: limit_of(node, ANYONE, "whatever") == MEGA)
        yield node


@pytest.mark.proves("faults.names")
def test_rotating_client_ids_share_the_quota_of_their_user(small_node: KafkaNode) -> None:
    misses, batch = gauge(small_node, "QuotaTable", "Misses"), record_batch(900_000)
    throttle_times: list[int] = []
    with RawClient(small_node, "rotating") as client:
        while not any(throttle_times) and len(throttle_times) < 9:
            client.rename(f"rotating-{len(throttle_times)}")
            throttle_times.append(client.produce("t", batch).throttle_ms)
    assert max(throttle_times) > 0, "Kafka's window of 1 MB/s is used up by all of them together"
    # The broker's own clients may be missed meanwhile; each of these would be at least twice.
    assert gauge(small_node, "QuotaTable", "Misses") - misses < len(throttle_times), "nobody had to be asked about them"
    assert {q.tags["client-id"] for q in enforced_quotas(small_node, "PRODUCE", user=ANYONE)} == {""}


@pytest.mark.proves("faults.names")
def test_client_ids_of_32_kb_cost_the_broker_nothing_that_stays(small_node: KafkaNode) -> None:
    assert introduce_clients(small_node, (f"{number:032000}" for number in range(1_500))) == 1_500
    assert gauge(small_node, "QuotaTable", "Clients") <= 2, "all of them are one; the broker's own may be there, too"
    assert "OutOfMemoryError" not in small_node.log_text()
