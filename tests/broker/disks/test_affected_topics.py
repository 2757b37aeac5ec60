"""factor.scope=topics on a real broker slows and stops only clients that write to the topics of a full volume."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import PLUGINS, callback_node, changed, tell
from tests.broker.support.numbers import attempt, end_offset
from tests.broker.support.seen import OPEN, PAUSE, THROTTLE, gauge, state, wait_for_rate

QUOTA: Final = 1e6  # bytes/s of each user
FACTOR: Final = 0.4
SETTINGS: Final = {
    "factor.source": "filling",
    "factor.interval": "100ms",
    "factor.scope": "topics",
    "static.scope": "user",
    "static.produce": "1M",
}
FULL_RATE: Final = pytest.approx(QUOTA, rel=0.15)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory = tmp_path_factory.mktemp("node")
    (directory / "filling").write_text("/dev/sdb 0\n")
    env = {"PYTHONPATH": str(PLUGINS), "FILLING": str(directory / "filling")}
    users = {"alice": "a", "bob": "b"}
    with callback_node(directory, SETTINGS, users=users, env=env, properties=QUICK_QUOTAS | FENCE) as node:
        for topic in ("orders", "other"):
            create_topic(node, topic)
        yield node


@pytest.fixture(autouse=True)
def _is_empty_again(node: KafkaNode) -> Iterator[None]:
    yield
    fill(node, 0, OPEN)


def fill(node: KafkaNode, consumed: int, expected: int, *topics: str) -> None:
    """Reports ``consumed`` bytes and these topics for the broker's only volume, whose limits are 100 and 200."""
    tell(Path(node.env["FILLING"]), f"/dev/sdb {consumed} {' '.join(topics)}\n")
    eventually(lambda: state(node) == expected)
    eventually(lambda: gauge(node, "QuotaTable", "AffectedTopics") == len(topics))
    eventually(lambda: gauge(node, "Fence", "Closed") == (expected == PAUSE))


def slowed(node: KafkaNode, user: str, client_id: str) -> bool:
    return quota_now(node, user, client_id).slowed


@pytest.mark.long
def test_only_those_who_write_to_its_topics_are_slowed_and_stopped(node: KafkaNode) -> None:
    there = ProducerLoad(node.client_config("alice", "there"), "orders")
    beside = ProducerLoad(node.client_config("alice", "beside"), "other")  # shares alice's quota
    elsewhere = ProducerLoad(node.client_config("bob", "elsewhere"), "other")
    with there, beside, elsewhere:
        wait_for_rate(FULL_RATE, elsewhere)
        fill(node, 160, THROTTLE, "orders")
        wait_for_rate(pytest.approx(FACTOR * QUOTA, rel=0.15), there)
        wait_for_rate(FULL_RATE, beside)
        wait_for_rate(FULL_RATE, elsewhere)
        for user, bound in (("<slowed alice>", FACTOR * QUOTA), ("alice", QUOTA)):
            eventually(lambda u=user, b=bound: [q.bound for q in enforced_quotas(node, "PRODUCE", user=u)] == [b])

        fill(node, 200, PAUSE, "orders")
        wait_for_rate(FULL_RATE, beside)
        stopped_at = end_offset(node, "orders")  # requests in flight have been appended by now
        wait_for_rate(FULL_RATE, elsewhere)
        assert end_offset(node, "orders") == stopped_at
        assert attempt(node.client_config("bob", "x"), "orders") == "NOT_ENOUGH_REPLICAS"
        assert attempt(node.client_config("bob", "x"), "other") is None

        fill(node, 160, THROTTLE, "bills")  # orders has moved to another volume
        wait_for_rate(pytest.approx(QUOTA, rel=0.15), there, beside)
        assert not slowed(node, "alice", "there")
    assert there.errors == beside.errors == elsewhere.errors == []


def test_who_writes_elsewhere_only_is_free_again_and_new_client_ids_gain_nothing(node: KafkaNode) -> None:
    fill(node, 160, THROTTLE, "orders")
    first = node.client_config("bob", "id-0")
    eventually(lambda: attempt(first, "orders") is None and slowed(node, "bob", "id-0"))
    for number in range(1, 5):
        assert attempt(node.client_config("bob", f"id-{number}"), "orders") is None
        assert slowed(node, "bob", f"id-{number}")
    assert len(enforced_quotas(node, "PRODUCE", user="<slowed bob>")) == 1
    assert not slowed(node, "bob", "another")

    eventually(lambda: attempt(first, "other") is None and not slowed(node, "bob", "id-0"))


def test_a_silent_host_stops_all_and_then_those_of_the_full_disk_alone(node: KafkaNode) -> None:
    fill(node, 160, THROTTLE, "orders")
    config = node.client_config("bob", "elsewhere")
    assert attempt(config, "other") is None
    # Only this test has a short validity, because a busy machine may delay the host for some seconds in the others.
    with changed(node, {"validity": "4s"}):
        tell(Path(node.env["FILLING"]), "hang")
        eventually(lambda: attempt(config, "other") == "NOT_ENOUGH_REPLICAS", what="the lease has expired")
        fill(node, 200, PAUSE, "orders")
        eventually(lambda: attempt(config, "other") is None, what="the host answers again")
    eventually(lambda: attempt(node.client_config("bob", "there"), "orders") == "NOT_ENOUGH_REPLICAS")
    assert not slowed(node, "bob", "elsewhere")
