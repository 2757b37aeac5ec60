"""A plugin's client that doesn't reach the cluster: what the log says, and from when on."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from harness.system.certificates import identity, key_as_pem
from harness.system.waiting import eventually
from quotahost.background import start_daemon
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


@pytest.fixture
def refusing(tmp_path: Path) -> Iterator[tuple[str, list[float]]]:
    """Who connects here finds a certificate that nobody trusts; the address, and when each try was."""
    party, key, tries = identity(tmp_path, "untrusted"), tmp_path / "key.pem", list[float]()
    key.write_text(key_as_pem(party))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(party.certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    tries.append(time.monotonic())
                    with connection, suppress(OSError):
                        tls.wrap_socket(connection, server_side=True)

        start_daemon("refusing", serve)
        yield f"127.0.0.1:{server.getsockname()[1]}", tries
        server.shutdown(socket.SHUT_RDWR)


def test_clients_that_are_refused_try_as_one_and_more_and_more_seldom(
    refusing: tuple[str, list[float]], caplog: pytest.LogCaptureFixture
) -> None:
    address, tries = refusing
    broker = FakeBroker(client={"bootstrap.servers": address, "security.protocol": "ssl"}, brokers={1: False})
    mine = context(broker, startup__grace="1ms")
    followers = [Follower(mine, f"t{number}", nothing, connection=f"{number}") for number in range(4)]
    publisher = Publisher(mine, "t", "volumes", nothing)

    def rests() -> bool:
        publisher.send(b"1", bytes)
        return len(tries) > 5 and tries[-1] - tries[-2] > 2

    eventually(rests, poll=0.5)
    for follower in followers:
        follower.close()
    assert len(tries) <= 10
    assert sum("not connected: TLS fails" in line for line in caplog.messages) == len([*followers, publisher])


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
