"""What plugins and the host learn of this broker and its cluster."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from quotahost.broker.host.broker import TRIES, ClusterQuery, HostBroker
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


def test_principals_follow_what_kafka_applies_and_are_derived_once(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim(node=node_of(1, "old"))
    broker = HostBroker(shim, read({}))
    assert broker.principals == ["old"]
    shim.node = {**node_of(1), "security.inter.broker.protocol": "SASL_PLAINTEXT"}
    for _ in range(2):
        broker.refresh(read({}))
    assert broker.principals == []
    assert len(caplog.records) == 1


NEWS = Cluster("the-cluster", frozenset({1, 10}))
PREFIX = "client.quota.callback."

NO_ANSWER = ConnectionError("TimeoutException: no answer")


def asked(shim: FakeShim) -> list[str]:
    """What the cluster was asked."""
    return [name for name, _ in shim.called if name in ("cluster", "configs")]


def heard(look: ClusterQuery) -> tuple[list[Cluster], list[tuple[str, ...]]]:
    """What the host thread gets: the cluster, and what is stored."""
    clusters, stored = list[Cluster](), list[tuple[str, ...]]()
    look.hand_on(clusters.append, stored.append)
    return clusters, stored


@pytest.fixture
def shim() -> FakeShim:
    return FakeShim(told={"cluster": ["the-cluster", [[10, False], [1, False], [2, True]]]})


@pytest.fixture
def look(shim: FakeShim) -> Iterator[ClusterQuery]:
    made = ClusterQuery(shim)
    made.start(7)  # its thread waits for much longer than a test
    yield made
    made.close()


def test_a_kafka_that_does_not_tell_is_asked_and_nothing_told_twice(shim: FakeShim, look: ClusterQuery) -> None:
    look.look()
    assert heard(look) == ([NEWS], []), "nothing of ours is stored"
    look.look()
    assert heard(look) == ([], [])
    shim.told["cluster"] = ["the-cluster", [[1, False]]]
    look.look()
    assert heard(look)[0] == [Cluster("the-cluster", frozenset({1}))]
    look.kafka_tells()
    look.look()
    assert asked(shim) == ["configs", "cluster", "cluster", "cluster"], "a Kafka that tells is asked no more"
    assert shim.arguments("configs") == [["BROKER", ["7"]]]
    alone = ClusterQuery(shim)
    alone.start(None)
    shim.called.clear()
    alone.look()
    alone.close()
    assert asked(shim) == ["cluster"], "a controller alone is not asked what is stored"


@pytest.mark.parametrize("fetched_late", [False, True])
def test_an_answer_that_kafkas_news_overtook_is_dropped(shim: FakeShim, look: ClusterQuery, fetched_late: bool) -> None:
    def overtaken() -> Any:
        if not fetched_late:
            look.kafka_tells()
        return ["the-cluster", [[1, False]]]

    shim.told["cluster"] = overtaken
    look.look()
    look.kafka_tells()
    assert heard(look)[0] == []


def test_a_second_silence_is_logged_once(shim: FakeShim, look: ClusterQuery, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shim.told["cluster"] = NO_ANSWER
    look.look()
    assert caplog.text == ""
    for _ in range(3):
        look.look()
    assert heard(look)[0] == []
    assert caplog.text.count("which brokers are alive, and can't be asked: TimeoutException: no answer") == 1


def test_which_of_our_names_are_stored_is_told_once_when_the_broker_answers(shim: FakeShim, look: ClusterQuery) -> None:
    shim.told["configs"] = NO_ANSWER
    look.look()
    shim.told["configs"] = [
        ["7", f"{PREFIX}b", "DYNAMIC_BROKER_CONFIG", ""],
        ["7", f"{PREFIX}a", "DYNAMIC_DEFAULT_BROKER_CONFIG", ""],
        ["7", f"{PREFIX}c", "STATIC_BROKER_CONFIG", ""],
        ["7", "log.retention.ms", "DYNAMIC_BROKER_CONFIG", ""],
    ]
    look.look()
    assert heard(look)[1] == [(f"{PREFIX}a", f"{PREFIX}b")]
    look.look()
    assert heard(look)[1] == []
    assert len(shim.arguments("configs")) == 2


def test_who_may_not_ask_stops_asking(shim: FakeShim, look: ClusterQuery, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shim.told["configs"] = ConnectionError("ClusterAuthorizationException: denied")
    for _ in range(10):
        look.look()
    assert len(shim.arguments("configs")) == TRIES
    assert caplog.text.count("can't be looked at for misspelt names: ClusterAuthorizationException: denied") == 1
