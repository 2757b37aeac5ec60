"""The Prometheus endpoint: what a scrape is answered, and that no client of the port costs the broker threads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from quotahost.broker.host import exporter
from quotahost.broker.host.exporter import Exporter
from quotahost.broker.host.messages import Gauge
from tests.fakes.plugin_context import eventually

HALF_SENT = b"GET /metrics HTTP/1.1\r\nHost: broker\r\nX-More:"
LARGE = 25_000  # volumes, whose page is larger than 10 MB


class Endpoint:
    """An exporter of the volumes that a test sets."""

    def __init__(self) -> None:
        self.shown = [Gauge("Volume", "/d", "Capacity", 7.0)]
        self.detached: list[str] = []
        self.exporter = Exporter(
            "127.0.0.1", 0, lambda: self.shown, lambda: self.detached.append(threading.current_thread().name)
        )
        eventually(lambda: b"} 7.0" in self.page())

    def page(self, path: str = "/metrics") -> bytes:
        with urlopen(f"http://127.0.0.1:{self.exporter.port}{path}", timeout=30) as page:
            body: bytes = page.read()
            return body

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.exporter.port), timeout=30)
        made.sendall(sent)
        return made


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.exporter.close()


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_scrape_is_answered_with_the_numbers_that_were_read_last(endpoint: Endpoint) -> None:
    endpoint.shown = [Gauge("Volume", "/d", "Capacity", 8.0)]
    eventually(lambda: b"} 8.0" in endpoint.page())
    endpoint.exporter.close()
    assert endpoint.detached == ["quotahost-metrics"]
    with pytest.raises(OSError, match="refused"):
        endpoint.connect()


def test_the_page_is_compressed_as_prometheus_asks(endpoint: Endpoint) -> None:
    with endpoint.connect(b"GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n") as connection:
        head = connection.makefile("rb").read().partition(b"\r\n\r\n")[0]
    assert b"200 OK" in head
    assert b"Content-Encoding: gzip" in head


@pytest.mark.parametrize(
    "request_line", [b"nonsense", b"GET", b"\xff \xff \xff", b"GET / HTTP/1.1\r\n" + b"a" * 20_000]
)
def test_what_is_no_request_is_closed_and_others_are_answered(endpoint: Endpoint, request_line: bytes) -> None:
    with endpoint.connect(request_line + b"\r\n\r\n") as connection:
        assert is_closed(connection)
    assert b"} 7.0" in endpoint.page()


def test_other_methods_than_get_are_refused(endpoint: Endpoint) -> None:
    with pytest.raises(HTTPError, match="405"):
        urlopen(f"http://127.0.0.1:{endpoint.exporter.port}/metrics", data=b"x", timeout=30)


def test_300_half_sent_requests_and_a_slow_reader_cost_no_threads_and_others_are_answered(endpoint: Endpoint) -> None:
    before = threading.active_count()
    endpoint.shown = [Gauge("Volume", f"/{at:0400}", "Capacity", 7.0) for at in range(LARGE)]
    eventually(lambda: len(endpoint.page()) > 10_000_000)
    with ExitStack() as stack:
        stack.enter_context(endpoint.connect(HALF_SENT + b"\r\n\r\n")).recv(1)  # the slow reader
        endpoint.shown = [Gauge("Volume", "/d", "Capacity", 7.0)]
        for _ in range(300):
            stack.enter_context(endpoint.connect(HALF_SENT))
        eventually(lambda: len(endpoint.page()) < 1_000_000)
        assert threading.active_count() <= before + 10


def test_a_request_that_takes_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "DEADLINE", 0.2)
    endpoint = Endpoint()
    with endpoint.connect(HALF_SENT) as connection:
        assert is_closed(connection)
    endpoint.exporter.close()
