"""A plugin's client that doesn't reach the cluster: what the log says, and from when on."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from harness.system.proxy import Proxy
from harness.system.waiting import eventually
from quotahost.kafka.client import Connection
from quotahost.kafka.follower import Follower
from quotahost.kafka.publisher import Publisher
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, context

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def nothing(*_: object) -> None: ...


def test_why_a_first_record_can_not_be_published_is_said_once_the_start_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker, clock = FakeBroker(), Clock()
    broker.client, broker.brokers = NOBODY, {1: False}
    publisher = Publisher(context(broker, startup__grace="30s"), "t", "volumes", nothing, clock)
    publisher.send(b"1", bytes)
    assert (caplog.messages, broker.number("Publication", "Errors")) == ([], 0), "its own listener may not be open yet"
    clock.now += 31
    for _ in range(2):
        publisher.send(b"1", bytes)
    assert caplog.messages == [
        "not connected: nobody listens there",
        "this broker's volumes can't be published; it tries again: nobody listens there",
    ]
    assert broker.number("Publication", "Errors") == 2


def test_a_reader_that_never_reaches_the_cluster_says_so_once_the_start_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = FakeBroker()
    broker.client = NOBODY
    follower = Follower(context(broker, startup__grace="1ms"), "t", nothing)
    eventually(lambda: caplog.messages)
    follower.close()
    assert caplog.messages[0].startswith("not connected: ")


def test_a_topic_that_nobody_has_made_yet_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    mock = AdminClient({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = mock.list_topics(timeout=10).brokers.values()
    broker, absent = FakeBroker(), list[int]()
    broker.client = {"bootstrap.servers": f"{address.host}:{address.port}"}
    made = context(broker, startup__grace="1ms")
    follower = Follower(made, "t", nothing, absent=lambda: absent.append(len(caplog.messages)))
    eventually(lambda: len(absent) > 1)
    follower.close()
    assert set(absent) == {0}


def test_a_reader_that_waits_for_its_topic_says_when_the_cluster_answers_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mock = AdminClient({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = mock.list_topics(timeout=10).brokers.values()
    broker = FakeBroker()
    with Proxy(address.port) as network:
        network.cut()
        broker.client = {"bootstrap.servers": f"127.0.0.1:{network.port}"}
        follower = Follower(context(broker, startup__grace="1ms"), "t", nothing)
        eventually(lambda: caplog.messages)
        network.heal()
        eventually(lambda: "connected again" in caplog.messages)
        follower.close()


def test_the_newest_client_of_a_name_shows_its_connection_until_the_last_is_closed() -> None:
    broker = FakeBroker()
    one = Connection(context(broker), "twice")
    one.works()
    staged = Connection(context(broker), "twice")
    assert broker.shown["Connection", "twice", "Connected"] == 0
    staged.close()  # its change was not applied
    assert broker.shown["Connection", "twice", "Connected"] == 1
    one.close()
    assert ("Connection", "twice", "Connected") not in broker.shown
