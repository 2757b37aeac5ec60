"""One broker with two volumes: the affected topics are those on the volume that is above its soft limit just now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from harness.java.jmx import Jmx
from harness.kafka.admin import create_topic, delete_topics
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import OPEN, THROTTLE, callback_node, state
from tests.broker.support.volumes import MEGA, QUICK_DELETION, SMALL_BURSTS, small_volume, topic_on_each

pytestmark = pytest.mark.broker

SETTINGS: Final = {
    "factor.source": "local",
    "factor.scope": "topics",
    "fence.authorizer": "none",
    "static.storage.soft": str(40 * MEGA),
    "static.storage.hard": str(90 * MEGA),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory = tmp_path_factory.mktemp("node")
    properties = SMALL_BURSTS | FENCE | QUICK_DELETION
    with ExitStack() as stack:
        node = callback_node(directory, SETTINGS, properties=properties, log_dirs=2)
        for volume in node.data_dirs:
            stack.enter_context(small_volume(volume, 100 * MEGA))
        yield stack.enter_context(node)


def is_for(node: KafkaNode, topics: str) -> None:
    """Wait until the cause of the factor says that it is for the writers of so many topics."""
    cause = f"; for writers of {topics}"
    eventually(lambda: cause in str(Jmx(node).query("quotahost:type=Cause,*")), what=cause)


def test_topics_that_come_and_go_on_a_volume_above_its_soft_limit_are_affected_from_then_on(node: KafkaNode) -> None:
    full, _ = topic_on_each(node.data_dirs, lambda topic: create_topic(node, topic))
    ballast = node.data_dirs[0] / "ballast"
    ballast.write_bytes(bytes(60 * MEGA))
    eventually(lambda: state(node) == THROTTLE, what="soft limit crossed")
    is_for(node, "1 topic")
    create_topic(node, "spread", partitions=4)
    is_for(node, "2 topics")
    delete_topics(node, "spread")
    is_for(node, "1 topic")
    delete_topics(node, full)
    is_for(node, "0 topics")
    ballast.unlink()
    eventually(lambda: state(node) == OPEN, what="space is back")
