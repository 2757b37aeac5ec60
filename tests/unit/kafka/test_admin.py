"""A compacted topic is created with as many replicas as there are brokers, once they have registered."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource

from quotahost.kafka import admin as module
from quotahost.kafka.admin import Gathering, ensure_compacted

ABSENT = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The replicas of each topic that is created, in a cluster with two live brokers and no topic."""
    replicas: list[int] = []

    def create(topics: list[Any], **_: Any) -> dict[str, Any]:
        replicas.append(topics[0].replication_factor)
        return {"t": SimpleNamespace(result=lambda timeout: None)}

    found = SimpleNamespace(topics={"t": SimpleNamespace(error=ABSENT)}, brokers={1: "", 2: ""})
    admin = SimpleNamespace(list_topics=lambda topic, timeout: found, create_topics=create)
    monkeypatch.setattr(module, "reach", lambda config, wait, topic: admin)
    return replicas


@pytest.mark.parametrize(
    ("brokers", "patient", "replicas"), [(5, True, 3), (3, True, 3), (2, True, 2), (3, False, 2), (0, True, 1)]
)
def test_it_has_up_to_three_replicas(made: list[int], brokers: int, patient: bool, replicas: int) -> None:
    ensure_compacted({}, "t", brokers, patient, gathering=False)
    assert made == [replicas]


def test_it_is_not_created_with_too_few_replicas_while_more_brokers_may_register(made: list[int]) -> None:
    with pytest.raises(Gathering):
        ensure_compacted({}, "t", 2, True, gathering=True)
    assert made == []
    ensure_compacted({}, "t", 3, True, gathering=True)
    assert made == [3]


def late(timeout: float) -> None:
    """As a future whose broker doesn't answer."""
    raise TimeoutError


def test_a_broker_that_does_not_answer_in_time_is_an_error_of_kafkas(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(topics={"t": SimpleNamespace(error=ABSENT)}, brokers={1: ""})
    answer = {"t": SimpleNamespace(result=late)}
    admin = SimpleNamespace(list_topics=lambda topic, timeout: found, create_topics=lambda topics, **_: answer)
    monkeypatch.setattr(module, "reach", lambda config, wait, topic: admin)
    with pytest.raises(KafkaException, match="Timed out"):
        ensure_compacted({}, "t", 1, patient=False, gathering=False)


def test_a_topic_whose_policy_nobody_tells_in_time_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(topics={"t": SimpleNamespace(error=None)})

    def describe(resources: list[ConfigResource], **_: Any) -> dict[ConfigResource, Any]:
        return {resources[0]: SimpleNamespace(result=late)}

    admin = SimpleNamespace(list_topics=lambda topic, timeout: found, describe_configs=describe)
    monkeypatch.setattr(module, "reach", lambda config, wait, topic: admin)
    ensure_compacted({}, "t", 1, patient=False, gathering=False)
