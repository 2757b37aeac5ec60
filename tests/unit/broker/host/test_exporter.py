"""Tests the Prometheus endpoint: answers to scrapes, each client's series, and connections that cost no threads."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest

from harness.system.waiting import eventually
from quotahost.broker.host import exporter
from quotahost.broker.host.exporter import Exporter, series
from quotahost.broker.metrics import CLIENTS
from quotahost.model.use import LimitedBy
from tests.fakes import dump
from tests.fakes.shim import FakeShim
from tests.unit.cli.top.uses import slowed as use

HALF_SENT = b"GET /metrics HTTP/1.1\r\nHost: broker\r\nX-More:"
VOLUME = ("Volume", "/d", "Capacity")
LARGE = 25_000  # volumes, whose page is larger than 10 MB


class Endpoint:
    """An exporter that shows the volumes that a test sets."""

    def __init__(self) -> None:
        self.shim = FakeShim(shown={VOLUME: 7.0})
        self.exporter = Exporter(self.shim, "127.0.0.1", 0, 0)
        eventually(lambda: b"} 7.0" in self.page())

    def page(self, path: str = "/metrics") -> bytes:
        with urlopen(f"http://127.0.0.1:{self.exporter.port}{path}", timeout=30) as page:
            body: bytes = page.read()
            return body

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.exporter.port), timeout=30)
        made.sendall(sent)
        return made


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "INTERVAL", 0.1)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.exporter.close()


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0)  # with a timeout, recv() would wait for the connection's end
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_a_scrape_is_answered_with_the_numbers_that_were_read_last(endpoint: Endpoint) -> None:
    endpoint.shim.gauge(*VOLUME, 8.0)
    eventually(lambda: b"} 8.0" in endpoint.page())
    endpoint.exporter.close()
    with pytest.raises(OSError, match="refused"):
        endpoint.connect()


@pytest.mark.proves("faults.first-flood")
def test_300_half_sent_requests_and_a_slow_reader_cost_no_threads_and_the_latest_are_answered(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    before = threading.active_count()
    endpoint.shim.shown = {("Volume", f"/{at:0400}", "Capacity"): 7.0 for at in range(LARGE)}
    eventually(lambda: len(endpoint.page()) > 10_000_000)
    with ExitStack() as stack:
        stack.enter_context(endpoint.connect(HALF_SENT + b"\r\n\r\n")).recv(1)  # the slow reader
        endpoint.shim.shown = {VOLUME: 7.0}
        half_sent = [stack.enter_context(endpoint.connect(HALF_SENT)) for _ in range(300)]
        eventually(lambda: not any(map(is_open, half_sent[: -exporter.CONNECTIONS])))
        assert all(map(is_open, half_sent[-exporter.CONNECTIONS :]))
        eventually(lambda: len(endpoint.page()) < 1_000_000)
        assert threading.active_count() <= before + 10
    assert caplog.records == []


def test_the_next_host_gets_the_port_although_this_one_ends_amid_a_large_page(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, make = threading.Event(), generate_latest
    # With 10,000 clients a page takes a second.
    monkeypatch.setattr(exporter, "generate_latest", lambda registry: (began.set(), time.sleep(1.5), make(registry))[2])
    with closing(endpoint.connect(b"GET /metrics HTTP/1.1\r\n\r\n")):
        assert began.wait(30)
        endpoint.exporter.close()
        Exporter(endpoint.shim, "127.0.0.1", endpoint.exporter.port, 0).close()


@pytest.mark.parametrize(
    ("sent", "deadline"),
    [
        *(
            (line + b"\r\n\r\n", 60.0)
            for line in (b"nonsense", b"POST / HTTP/1.1", b"GET / HTTP/1.1\r\n" + b"a" * 20000)
        ),
        (HALF_SENT, 0.2),
    ],
    ids=["nonsense", "POST", "long", "half sent"],
)
def test_what_is_no_request_or_takes_too_long_is_closed(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, sent: bytes, deadline: float
) -> None:
    monkeypatch.setattr(exporter, "DEADLINE", deadline)
    with endpoint.connect(sent) as connection:
        eventually(lambda: not is_open(connection))
    assert b"} 7.0" in endpoint.page()


def test_a_client_has_a_series_for_each_number_and_one_for_what_binds_it() -> None:
    labels = ("alice", "app", "client", "PRODUCE")
    found = {attribute: values for (_, attribute), values in series([use()]).items()}
    assert found == {
        "Rate": {labels: 900.0},
        "Quota": {labels: 1000.0},
        "Limit": {labels: 500.0},
        "DelayMs": {labels: 0.25},
        "Bound": {(*labels, "factor"): 1},
    }
    unlimited = series([use(quota=None, limit=None, bound=LimitedBy.NOTHING)])
    assert [attribute for _, attribute in unlimited] == ["Rate", "DelayMs"]
    shadowed = series([use(bound=LimitedBy.NOTHING, shadow="factor")])
    assert list(shadowed[CLIENTS, "Bound"]) == [(*labels, "shadow: factor")]
    long = {user for user, *_ in series([use("x" * 1000), use("x" * 999 + "y")])[CLIENTS, "Rate"]}
    assert sorted(map(len, long)) == [100, 100], "long names are cut and stay distinct"


@pytest.mark.parametrize("fails", ["gauges", "uses"])
def test_what_cannot_be_read_is_left_out_until_it_can(fails: str, caplog: pytest.LogCaptureFixture) -> None:
    works = {"gauges": [], "uses": dump.uses(dump.row(rate=900.0))}
    shim = FakeShim(answers=works | {fails: ConnectionError("no JMX")})

    def rates() -> list[float]:
        (shown,) = (metric for metric in made.collect() if metric.name == "quotahost_client_rate")
        return [sample.value for sample in shown.samples]

    with closing(Exporter(shim, "127.0.0.1", 0, 200)) as made:
        eventually(lambda: "can't be read (no JMX)" in caplog.text)
        assert rates() == []
        shim.answers = works
        eventually(lambda: rates() == [900.0])
