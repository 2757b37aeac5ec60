"""Real clients get the rates that Python decides, from the first request on and whatever client-ids they claim."""

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

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
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.commands import explain_client, field, last_line
from tests.broker.support.node import callback_node
from tests.broker.support.seen import ANYONE, gauge, has_own_quota, limit_of, wait_for_rate

STATIC = 1e6
USERS = {"alice": "a", "bob": "b", "admin": "c"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"static.produce": "1M", "static.fetch": "3M", "static.excluded.principal.name.list": "User:admin"}
    shares = {
        "share.coordinator.state.topic.num.partitions": "2", "group.share.min.record.lock.duration.ms": f"{LOCK}000",
    }  # fmt: skip
    more = {"users": USERS, "properties": QUICK_QUOTAS | shares, "log_dirs": 2, "heap": "256m"}
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
    set_quota(node, {"producer_byte_rate": 7e6}, user="bob")
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
            assert number < 9, "all client-ids together use up Kafka's window of 1 MB/s"
            client.rename(f"rotating-{number}")
    # The broker's own clients may cause misses meanwhile; each rotating client-id would cause at least two.
    assert gauge(node, "QuotaTable", "Misses") - misses <= number, "the host wasn't asked about any of the client-ids"
    assert {q.tags["client-id"] for q in enforced_quotas(node, "PRODUCE", user=ANYONE)} == {""}


@pytest.mark.proves("faults.names")
def test_client_ids_of_32_kb_cost_the_broker_nothing_that_stays(node: KafkaNode) -> None:
    before = gauge(node, "QuotaTable", "Clients")
    assert introduce_clients(node, (f"{number:032000}" for number in range(1_500))) == 1_500
    assert gauge(node, "QuotaTable", "Clients") <= before + 1, "all these client-ids count as one client"
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


# ---- share groups (KIP-932): a member's reads count against its own quota and are delayed, as other fetches are ----

SHARED: Final = 1e6  # bytes/s
LOCK: Final = 15  # seconds; the broker's minimum is configured to the same


@pytest.mark.long
def test_a_share_consumers_fetches_are_counted_and_delayed_by_its_own_quota(node: KafkaNode) -> None:
    create_topic(node, "slow", partitions=2)
    fill_topic(node.client_config("admin", "filler"), "slow", 20_000_000)
    settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": f"{LOCK}000"}
    alter_config(node, "GROUP", "slow", settings)
    set_quota(node, {"consumer_byte_rate": SHARED}, client_id="member")
    seconds, reader = 40, {"bootstrap.servers": node.bootstrap, "group.id": "slow", "client.id": "member"}
    found = helper(node.version).ask("measure-shared", "slow", seconds, reader, timeout=seconds + 60)
    assert has_own_quota(node, ANYONE, "member")
    assert quota_now(node, ANYONE, "member", "FETCH").limit == SHARED
    (quota,) = enforced_quotas(node, "FETCH", client_id="member")
    assert quota.bound == SHARED
    assert found["throttle"] > 0
    assert SHARED < found["bytes"] < SHARED * (seconds + QUICK_WINDOW)
    assert found["later"] > 0, "records that a delayed answer left out come when their lock has expired"


# ---- the factor source ``load``: greedy clients are slowed while the broker's request handler has no time left ----

TARGET: Final = 0.3
#: Large batches of random bytes, which the broker compresses without effect. This costs its one handler thirty times
#: what it costs a client, so a busy machine slows the handler first.
BATCHES: Final = {"batch.size": 1_000_000, "queue.buffering.max.kbytes": 8_192}
LARGE: Final = 900_000  # bytes of a record
COSTLY: Final = {"compression.type": "gzip", "compression.gzip.level": "9"}


def test_greedy_clients_are_slowed_until_the_handler_has_time_and_let_go_afterwards(tmp_path: Path) -> None:
    properties = {"num.io.threads": "1", "quota.window.num": "2"} | FENCE  # two windows, as docs/quotas.md advises
    settings = {"factor.source": "load"}

    with ExitStack() as stack:
        node = stack.enter_context(callback_node(tmp_path, settings, properties=properties))
        create_topic(node, "t", config=COSTLY)

        def factor() -> float:
            return gauge(node, "TypedFactor,name=load", "Factor")

        small = stack.enter_context(ProducerLoad(node.client_config(client_id="small"), "t", rate=20_000))
        eventually(lambda: small.meter.bytes > 40_000)
        eventually(lambda: factor() == 1, what="the handler has time enough for the present client")
        with ExitStack() as greedy:
            for number in range(4):
                config = {**node.client_config(client_id=f"greedy-{number}"), **BATCHES}
                greedy.enter_context(ProducerLoad(config, "t", LARGE, noise=True))
            eventually(lambda: factor() < 0.9, what="the handler has no time left")
            eventually(lambda: limit_of(node, ANYONE, "greedy-0") < 1e9)

            def is_explained() -> bool:
                text = explain_client(node, ANYONE, "greedy-0")[1]
                assert "since this broker's request handlers are" in last_line(text)
                assert "idle (target 30 %)" in text
                assert field(text, "state") == "OPEN", "the state is that of the disks"
                return True

            eventually(is_explained)
            eventually(lambda: gauge(node, "Load", "HandlersIdle") > TARGET / 2, what="the handler has time again")
            assert gauge(node, "Fence", "Closed") == 0
        eventually(lambda: factor() == 1)
        eventually(lambda: math.isnan(limit_of(node, ANYONE, "greedy-0")), what="no client is slowed any more")
