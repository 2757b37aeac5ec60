"""What a share group reads (KIP-932) is counted and delayed as other fetches are, by the quota of each member."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.clients.load import QUICK_QUOTAS, QUICK_WINDOW
from harness.clients.producer import fill_topic
from harness.java.helper import helper
from harness.kafka.admin import alter_config, create_topic, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import enforced_quotas
from tests.broker.support.node import callback_node
from tests.broker.support.seen import ANYONE, has_own_quota
from tests.broker.support.volumes import MEGA

pytestmark = pytest.mark.long

TOPIC: Final = "t"
BYTES: Final = 20 * MEGA
QUOTA: Final = 1 * MEGA  # bytes/s
LOCK: Final = 15  # seconds; Kafka's least is configured so, too
SHARES: Final = {
    "share.coordinator.state.topic.num.partitions": "2", "group.share.min.record.lock.duration.ms": f"{LOCK}000",
}  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """Client ``quick`` has a rate that it can't reach, all others have QUOTA."""
    settings = {"supplier": "client-quotas,static", "static.fetch": "1M"}
    with callback_node(tmp_path_factory.mktemp("node"), settings, properties=QUICK_QUOTAS | SHARES) as node:
        create_topic(node, TOPIC, partitions=2)
        set_quota(node, {"consumer_byte_rate": 1e9}, client_id="quick")
        fill_topic(node.client_config(client_id="filler"), TOPIC, BYTES)
        yield node


def read(node: KafkaNode, group: str, client_id: str, seconds: int) -> dict[str, Any]:
    """What a member of the group reads; see ShareReader.java."""
    settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": f"{LOCK}000"}
    alter_config(node, "GROUP", group, settings)
    reader = {"bootstrap.servers": node.bootstrap, "group.id": group, "client.id": client_id}
    found: dict[str, Any] = helper(node.version).ask("measure-shared", TOPIC, seconds, reader, timeout=seconds + 60)
    return found


def test_a_share_consumers_fetches_are_counted_and_delayed_by_its_own_quota(node: KafkaNode) -> None:
    seconds = 40
    found = read(node, "slow", "member", seconds)
    assert has_own_quota(node, ANYONE, "member")
    assert quota_now(node, ANYONE, "member", "FETCH").limit == QUOTA
    (quota,) = enforced_quotas(node, "FETCH", client_id="member")
    assert quota.bound == QUOTA
    assert found["throttle"] > 0
    assert QUOTA < found["bytes"] < QUOTA * (seconds + QUICK_WINDOW)
    assert found["later"] > 0, "what a delayed answer would have held comes when its lock has run out"


def test_a_share_consumer_with_a_quota_that_it_does_not_reach_is_not_delayed(node: KafkaNode) -> None:
    found = read(node, "quick", "quick", 15)
    assert quota_now(node, ANYONE, "quick", "FETCH").limit == 1e9
    assert found["bytes"] == BYTES
    assert found["throttle"] == 0
    assert found["later"] == 0
