"""What the host learns of its cluster where Kafka doesn't tell it."""

import logging
from typing import Any

import pytest

from quotahost.broker.host.cluster_query import ClusterQuery
from quotahost.model import Cluster
from tests.fakes.shim import FakeShim

NEWS = Cluster("the-cluster", frozenset({1, 10}))


def heard(look: ClusterQuery) -> list[Cluster]:
    """What the host thread gets."""
    clusters: list[Cluster] = []
    look.hand_on(clusters.append, lambda names: None)
    return clusters


@pytest.fixture
def shim() -> FakeShim:
    return FakeShim(told={"cluster": ["the-cluster", [[10, False], [1, False], [2, True]]]})


def test_a_kafka_that_does_not_tell_is_asked_and_nothing_told_twice(shim: FakeShim) -> None:
    look = ClusterQuery(shim)
    look.look()
    assert heard(look) == [NEWS]
    look.look()
    assert heard(look) == []
    shim.told["cluster"] = ["the-cluster", [[1, False]]]
    look.look()
    assert heard(look) == [Cluster("the-cluster", frozenset({1}))]
    look.kafka_tells()
    look.look()
    assert len(shim.arguments("cluster")) == 3, "a Kafka that tells is asked no more"


@pytest.mark.parametrize("fetched_late", [False, True])
def test_an_answer_that_kafkas_news_overtook_is_dropped(shim: FakeShim, fetched_late: bool) -> None:
    look = ClusterQuery(shim)

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
def test_which_of_our_names_are_stored_is_asked_until_the_broker_answers_or_denies_it(
    shim: FakeShim, problem: str, times: int
) -> None:
    look, told = ClusterQuery(shim), list[tuple[str, ...]]()
    thread = look.start(7)  # its thread waits for longer than this test
    silent = ConnectionError(problem)
    for answer in (silent, silent, ROWS, ROWS):
        shim.told["configs"] = answer
        look.look()
        look.hand_on(lambda now: None, told.append)
    thread.close()
    assert shim.arguments("configs") == [["BROKER", ["7"]]] * times
    assert told == [("client.quota.callback.a", "client.quota.callback.b")] * (times == 3)


def test_a_silence_is_logged_once(shim: FakeShim, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    look = ClusterQuery(shim)
    shim.told["cluster"] = ConnectionError("TimeoutException: no answer")
    for _ in range(3):
        look.look()
    assert heard(look) == []
    assert caplog.text.count("which brokers are alive, and can't be asked: TimeoutException: no answer") == 1
