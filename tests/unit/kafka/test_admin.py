"""A compacted topic is created with as many replicas as there are brokers, once they have registered."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from quotahost.kafka.admin import Gathering, ensure_compacted

ABSENT = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


class Admin:
    """Of a cluster with two live brokers; ``made`` has the replicas of each topic that was created."""

    def __init__(self) -> None:
        self.error: KafkaError | None = ABSENT  # of the topic t
        self.result: Callable[[float], None] = lambda wait: None
        self.made: list[int] = []

    def list_topics(self, *_: Any, timeout: float) -> Any:
        return SimpleNamespace(topics={"t": SimpleNamespace(error=self.error)}, brokers={1: "", 2: ""})

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, Any]:
        self.made.append(topics[0].replication_factor)
        return {"t": self}

    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Any]:
        return {resources[0]: self}


@pytest.fixture
def admin() -> Any:
    return Admin()


@pytest.mark.parametrize(
    ("brokers", "patient", "replicas"), [(5, True, 3), (3, True, 3), (2, True, 2), (3, False, 2), (0, True, 1)]
)
def test_it_has_up_to_three_replicas(admin: Any, brokers: int, patient: bool, replicas: int) -> None:
    ensure_compacted(admin, "t", brokers, patient, gathering=False)
    assert admin.made == [replicas]


def test_it_is_not_created_with_too_few_replicas_while_more_brokers_may_register(admin: Any) -> None:
    with pytest.raises(Gathering):
        ensure_compacted(admin, "t", 2, True, gathering=True)
    assert admin.made == []
    ensure_compacted(admin, "t", 3, True, gathering=True)
    assert admin.made == [3]


def test_a_broker_that_does_not_answer_in_time_is_an_error_of_kafkas_but_for_the_policy_of_a_topic(admin: Any) -> None:
    def late(wait: float) -> None:
        raise TimeoutError

    admin.result = late
    with pytest.raises(KafkaException, match="Timed out"):
        ensure_compacted(admin, "t", 1, patient=False, gathering=False)
    admin.error = None  # it exists: only its cleanup.policy isn't told
    ensure_compacted(admin, "t", 1, patient=False, gathering=False)
