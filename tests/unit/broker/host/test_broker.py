"""What plugins learn of this broker, and the host of its cluster where Kafka doesn't tell it."""

import logging
from typing import Any

import pytest

from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.cluster_query import ClusterQuery
from quotahost.model import Cluster
from tests.fakes.shim import FakeShim, node_of
from tests.unit.settings.properties import read

SECRET = "hunter2"


def test_plugins_get_no_secret_but_in_the_configuration_of_their_client() -> None:
    node = node_of(3, "broker")
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    broker = HostBroker(FakeShim(node=node | {name: f'{node[name]} password="{SECRET}";'}), read({}))
    assert broker.properties() == {"node.id": "3"}
    assert broker.client_config() == {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "broker",
        "sasl.password": SECRET,
        "client.id": "quotahost-3",
    }
    assert SECRET not in repr(broker)
    with pytest.raises(TypeError):
        broker.properties()["node.id"] = "4"  # type: ignore[index]


def test_principals_follow_what_kafka_applies_and_are_derived_once(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim(node=node_of(1, "old"))
    broker = HostBroker(shim, read({}))
    assert broker.principals == ["old"]
    shim.node = {**node_of(1), "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    for _ in range(2):
        broker.refresh(read({}))
    assert broker.principals == []
    assert len(caplog.records) == 1


# ---- the cluster ----


def heard(look: ClusterQuery) -> list[Cluster]:
    """What the host thread gets."""
    clusters: list[Cluster] = []
    look.hand_on(clusters.append, lambda names: None)
    return clusters


def test_a_kafka_that_does_not_tell_is_asked_and_neither_an_answer_nor_a_silence_told_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    look, found = ClusterQuery(shim := FakeShim()), list[Cluster]()
    silent, one = ConnectionError("TimeoutException: no answer"), ["id", [[1, False]]]
    for answer in (silent, silent, ["id", [[10, False], [1, False], [2, True]]], one, one):
        shim.told["cluster"] = answer
        look.look()
        found += heard(look)
    assert found == [Cluster("id", frozenset({1, 10})), Cluster("id", frozenset({1}))]
    assert caplog.text.count("which brokers are alive, and can't be asked: TimeoutException: no answer") == 1
    look.kafka_tells()
    look.look()
    assert len(shim.arguments("cluster")) == 5, "a Kafka that tells is asked no more"


@pytest.mark.parametrize("fetched_late", [False, True])
def test_an_answer_that_kafkas_news_overtook_is_dropped(fetched_late: bool) -> None:
    look = ClusterQuery(shim := FakeShim())

    def overtaken() -> Any:
        if not fetched_late:
            look.kafka_tells()
        return ["the-cluster", [[1, False]]]

    shim.told["cluster"] = overtaken
    look.look()
    look.kafka_tells()
    assert heard(look) == []


ROWS = [
    ["7", "client.quota.callback.b", "DYNAMIC_BROKER_CONFIG", ""],
    ["7", "client.quota.callback.a", "DYNAMIC_DEFAULT_BROKER_CONFIG", ""],
    ["7", "client.quota.callback.c", "STATIC_BROKER_CONFIG", ""],
    ["7", "log.retention.ms", "DYNAMIC_BROKER_CONFIG", ""],
]


@pytest.mark.parametrize(("problem", "times"), [("TimeoutException: no answer", 3), ("AuthorizationException: no", 1)])
def test_which_of_our_names_are_stored_is_asked_until_the_broker_answers_or_denies_it(problem: str, times: int) -> None:
    look, told = ClusterQuery(shim := FakeShim()), list[tuple[str, ...]]()
    thread = look.start(7)  # its thread waits for longer than this test
    silent = ConnectionError(problem)
    for answer in (silent, silent, ROWS, ROWS):
        shim.told["configs"] = answer
        look.look()
        look.hand_on(lambda now: None, told.append)
    thread.close()
    assert shim.arguments("configs") == [["BROKER", ["7"]]] * times
    assert told == [("client.quota.callback.a", "client.quota.callback.b")] * (times == 3)
