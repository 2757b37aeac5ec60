"""factor.scope=topics on a real broker slows and stops only clients that write to the topics of a full volume."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.kafka.admin import create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import PLUGINS, callback_node, changed, tell
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import OPEN, PAUSE, THROTTLE, gauge, state

QUOTA: Final = 1e6  # bytes/s of each user
FACTOR: Final = 0.4
SETTINGS: Final = {
    "factor.source": "filling",
    "factor.interval": "100ms",
    "factor.scope": "topics",
    "static.scope": "user",
    "static.produce": "1M",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory = tmp_path_factory.mktemp("node")
    (directory / "filling").write_text("/dev/sdb 0\n")
    env = {"PYTHONPATH": str(PLUGINS), "FILLING": str(directory / "filling")}
    properties = QUICK_QUOTAS | FENCE
    with callback_node(directory, SETTINGS, users={"bob": "b"}, env=env, properties=properties) as node:
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


def bounds(node: KafkaNode, client_id: str, topic: str, user: str) -> list[float | None]:
    """The bounds of the user's sensors after a record of bob's; Kafka asks for a changed limit at a request."""
    assert attempt(node.client_config("bob", client_id), topic) is None
    return [quota.bound for quota in enforced_quotas(node, "PRODUCE", user=user)]


def test_who_writes_elsewhere_only_is_free_again_and_new_client_ids_gain_nothing(node: KafkaNode) -> None:
    fill(node, 160, THROTTLE, "orders")
    first = node.client_config("bob", "id-0")
    eventually(lambda: attempt(first, "orders") is None and slowed(node, "bob", "id-0"))
    for number in range(1, 5):
        assert attempt(node.client_config("bob", f"id-{number}"), "orders") is None
        assert slowed(node, "bob", f"id-{number}")
    eventually(lambda: bounds(node, "id-1", "orders", "<slowed bob>") == [FACTOR * QUOTA])
    eventually(lambda: bounds(node, "another", "other", "bob") == [QUOTA])
    assert not slowed(node, "bob", "another")

    eventually(lambda: attempt(first, "other") is None and not slowed(node, "bob", "id-0"))
    assert slowed(node, "bob", "id-1")
    fill(node, 160, THROTTLE, "bills")  # orders has moved to another volume
    eventually(lambda: not slowed(node, "bob", "id-1"))


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
