"""Topics and partitions in a PAUSE: who may create them, what others are told, and what goes on all the same."""

from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from harness.clients.mutations import mutate
from harness.clients.raw import Kind
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import FIXED, callback_node, changed, set_factor
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import gauge

SENTENCE: Final = "creates no topics and partitions in a PAUSE"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A node whose coordinators have no topics yet, which pauses."""
    with callback_node(tmp_path_factory.mktemp("node"), FIXED, properties=FENCE) as node:
        create_topic(node, "old")
        set_factor(node, 0)
        yield node


def topics(node: KafkaNode) -> set[str]:
    return set(AdminClient(node.client_config()).list_topics(timeout=30).topics)


def refused(node: KafkaNode) -> float:
    return gauge(node, "Fence", "CreationsRefused")


def test_kafkas_own_admin_client_is_told_why_and_of_a_topic_that_exists_as_without_a_pause(node: KafkaNode) -> None:
    before = refused(node)
    kinds: tuple[Kind, ...] = ("create", "grow", "create")
    for kind, wanted in zip(kinds, ({"new": 3}, {"old": 3}, {"old": 1, "newer": 1}), strict=True):
        for error in mutate(node, "app", kind, wanted, retry=True).values():
            assert error is not None
            assert error.error == "PolicyViolationException"
            assert SENTENCE in error.message
    (error,) = mutate(node, "connect", "create", {"old": 1}).values()  # as a Connect worker at each start
    assert error is not None
    assert error.error == "TopicExistsException"
    assert refused(node) == before + 3, "it does not try again"
    assert not {"new", "newer"} & topics(node)
    node.wait_for_log(r"PAUSE: \d requests to create topics or partitions were refused.*pause.creation=allow")


def test_a_topic_that_a_producer_names_is_not_created_before_the_pause_ends(node: KafkaNode) -> None:
    config = node.client_config(client_id="names") | {"message.timeout.ms": "3000"}
    before = refused(node)

    def is_refused() -> bool:
        """Whether a broker was asked for the topic, too, in the time that the record has."""
        assert attempt(config, "by-itself") is not None
        return refused(node) > before

    eventually(is_refused)
    assert "by-itself" not in topics(node)
    set_factor(node, 1)
    eventually(lambda: attempt(config, "by-itself") is None)
    set_factor(node, 0)


def test_the_first_consumer_of_a_cluster_commits_all_the_same(node: KafkaNode) -> None:
    member = Consumer(node.client_config(client_id="first") | {"group.id": "first", "auto.offset.reset": "earliest"})
    member.subscribe(["old"])
    eventually(lambda: member.poll(1) is None and bool(member.assignment()))
    member.close()
    assert "__consumer_offsets" in topics(node)


def test_allow_and_shadow_let_all_pass_and_shadow_counts(node: KafkaNode) -> None:
    before = gauge(node, "Fence", "CreationsShadowed")
    with changed(node, {"pause.creation": "allow"}):
        eventually(lambda: mutate(node, "app", "create", {"allowed": 1}) == {"allowed": None})
    assert gauge(node, "Fence", "CreationsShadowed") == before
    names = (f"shadowed-{number}" for number in count())

    def passes_and_is_counted() -> bool:
        """Of a new topic: until the change holds, the former rule lets all pass, and counts nothing."""
        name, before = next(names), gauge(node, "Fence", "CreationsShadowed")
        assert mutate(node, "app", "create", {name: 1}) == {name: None}
        return gauge(node, "Fence", "CreationsShadowed") > before

    with changed(node, {"shadow": "all"}):
        eventually(passes_and_is_counted)
    assert "Unexpected error" not in node.log_text()
