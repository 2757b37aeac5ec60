"""Tests the calls to Java."""

import json
import socket
from typing import Any

import pytest

from quotahost.broker.host.messages import Batch, Event, Scoped, encode
from quotahost.broker.host.protocol import MOST, Shim
from quotahost.model import Client, Factor
from quotahost.model.volumes import Affected
from quotahost.testing import FakeBroker


class Java:
    """A transport that records each call's name and bytes, and answers by the name."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.calls = answers, list[tuple[str, bytes]]()

    def ask(self, message: bytes) -> bytes:
        self.tell(message)
        answer = self.answers.get(self.calls[-1][0])
        return json.dumps([str(answer), None] if isinstance(answer, Exception) else [None, answer]).encode()

    def tell(self, message: bytes) -> None:
        # The list has a header of five bytes, and so has its first member, a text.
        end = 10 + int.from_bytes(message[6:10])
        self.calls.append((message[10:end].decode(), message))


def test_a_batch_says_when_the_host_has_to_end_and_text_that_is_no_unicode_reaches_java_escaped() -> None:
    java = Java(take=[[["alice", "app"]], [["closing", []]], True], ask=["alice", 1])
    shim = Shim(java)
    assert shim.take(0.1) == Batch([Client("alice", "app")], [Event("closing", ())], closing=True)
    assert shim.ask("client", "alice", "\ud800") == ["alice", 1]
    assert java.calls[-1] == ("ask", encode(["ask", ["client", "alice", "\\ud800"]]))
    java.answers["factor"] = [0.5, "full", True, ["a"], ["a disk"], [], True]
    assert shim.factor() == Scoped(Factor(0.5, "full"), Affected({"a": "a disk"}, frozenset()), full=True)
    shim.set_factor(Scoped(Factor(0.5, "/data/\udcff is full")))
    assert rb"/data/\udcff is full" in java.calls[-1][1]


def test_a_problem_of_javas_or_pythons_is_a_connection_error() -> None:
    shim = Shim(Java(cluster=ConnectionError("TimeoutException: nobody"), ask={"error": "no"}))
    with pytest.raises(ConnectionError, match="TimeoutException: nobody"):
        shim.cluster()
    with pytest.raises(ConnectionError, match="no"):
        shim.ask("fail")


def test_the_cluster_is_asked_once_one_of_its_addresses_is_open() -> None:
    shim, open_ = Shim(java := Java(cluster=["id", []])), socket.create_server(("127.0.0.1", 0))
    with open_:
        shim.connect({"bootstrap.servers": "127.0.0.1:1,no port"})
        with pytest.raises(ConnectionError, match="1,no port: "):
            shim.cluster()
        assert java.calls[-1][0] == "connect"
        shim.connect({"bootstrap.servers": f"[::1]:1, 127.0.0.1:{open_.getsockname()[1]}"})
        assert shim.cluster() == ("id", {})
    assert shim.cluster() == ("id", {}), "the address is checked only once"


def test_a_call_that_is_too_large_or_names_no_number_fails_alone_and_is_not_sent() -> None:
    java = Java()
    shim = Shim(java)
    with pytest.raises(ValueError, match=r"the call gauge has [\d,]+ bytes, and may have [\d,]+"):
        shim.gauge("Volume", "x" * MOST, "Consumed", 1)
    shim.gauge("Volume", "x", "Consumed", 1)
    broker: Any = FakeBroker()
    of_java: Any = shim
    for show in (of_java.gauge, of_java.count, broker.gauge, broker.count):
        with pytest.raises(TypeError, match=r"are texts, not \(5, None, 'Consumed'\)"):
            show(5, None, "Consumed", 1)
        with pytest.raises(ValueError, match=r"unlike 'Volume, of mine'"):
            show("Volume, of mine", "x,*", "Consumed", 1)
    assert [call[0] for call in java.calls] == ["hello", "gauge"]
