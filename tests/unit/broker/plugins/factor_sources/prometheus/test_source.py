"""The factor source ``prometheus``: its properties, its memory, its thread and its log."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.broker.plugins.factor_sources.prometheus import Prometheus
from quotahost.model import ClusterVolumes, Volume
from quotahost.settings.declaration import SettingsError
from quotahost.settings.sections import read_section
from quotahost.testing.checks import check_factor_source
from tests.fakes.plugin_context import Clock, context
from tests.fakes.prometheus import FakePrometheus, success

SIZE = {("kafka-1", "/data"): 100, ("kafka-2", "/data"): 200}
FREE = {("kafka-1", "/data"): 25, ("kafka-2", "/data"): 150}
KNOWN = ClusterVolumes((Volume("kafka-1", "/data", 100, 75), Volume("kafka-2", "/data", 200, 50)))


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    fake.serve(SIZE, FREE)
    yield fake
    fake.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[..., Prometheus]


@pytest.fixture
def source(server: FakePrometheus, clock: Clock) -> Iterator[Make]:
    """Makes sources that ask the server, with more properties than the required ones."""
    made = []

    def make(**more: str) -> Prometheus:
        section = {key.replace("_", "-"): text for key, text in more.items()}
        own = section_of({"interval": "100ms", **section}, server.url)
        made.append(Prometheus(context(name="prometheus", own=own), clock))
        return made[-1]

    yield make
    for each in made:
        each._context.closing.close()


def section_of(section: dict[str, str], url: str = "http://prometheus:9090") -> Any:
    least = {"url": url, "capacity": "size", "available": "avail"}
    given = {key: text for key, text in (least | section).items() if text}
    return read_section("prometheus", given, Prometheus.Section)


def answered(plugin: Prometheus) -> ClusterVolumes:
    return eventually(plugin.read, what="the first answer")


def test_consumed_may_be_asked_for_and_labels_may_be_named(source: Make, server: FakePrometheus) -> None:
    server.replies["used"] = success({("kafka-1", "/data"): 75, ("kafka-2", "/data"): 50})
    assert answered(source(available="", consumed="used")) == KNOWN
    known = answered(source(broker_label="mountpoint", volume_label="instance"))
    assert Volume("/data", "kafka-1", 100, 75) in known.volumes


def test_a_fault_and_its_end_are_logged(source: Make, server: FakePrometheus, caplog: pytest.LogCaptureFixture) -> None:
    server.replies = {}
    plugin = source()
    plugin.read()
    eventually(lambda: len(server.asked) > 6, what="three more tries")
    failed = "prometheus 127.0.0.1 gives no answer; the last holds for a while: the server says bad_data: unknown query"
    assert caplog.messages == [failed]
    server.serve(SIZE, FREE)
    answered(plugin)
    healed = "prometheus 127.0.0.1 knows all volumes again"
    eventually(lambda: caplog.messages == [failed, healed])


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "quotahost-prometheus"]


def test_neither_read_nor_close_waits_for_a_server_that_hangs(source: Make, server: FakePrometheus) -> None:
    server.answer = lambda *_: success({}) if server.ended.wait() else None  # when the test ends
    plugin = source(timeout="1m")
    plugin.read()
    eventually(lambda: server.asked, what="the query that hangs")
    assert plugin.read() is None
    assert threads()
    plugin._context.closing.close()
    server.ended.set()
    eventually(lambda: not threads(), what="the end of the thread")


def test_it_keeps_the_contract_with_a_server_too(server: FakePrometheus) -> None:
    own = {"url": server.url, "capacity": "size", "available": "avail", "interval": "100ms"}
    check_factor_source(Prometheus, {f"plugin.prometheus.{name}": text for name, text in own.items()})


WRONG: dict[str, list[dict[str, str]]] = {
    "is no base URL; write one such as http://prometheus:9090, without ? and #": [
        {"url": each}
        for each in ("prometheus:9090", "ftp://prometheus", "http://", "http://a:0", "http://a b/", "http://a/?b=c")
    ],
    "exactly one of available and consumed": [{"available": ""}, {"consumed": "used"}],
    "has 'a' twice": [{"expected": "a,b,a"}],
    "set both username and password": [{"username": "me"}, {"password": "secret-word"}],
    "username=me:***: String should match pattern '^[^:]+$'": [{"username": "me:hunter2", "password": "x"}],
    "not both": [{"username": "me", "password": "secret-word", "bearer-token": "secret-token"}],
    "ca-location is for https": [{"ca-location": "/etc/ca.pem"}],
    # An error about a secret does not show it.
    "url must not hold a user name, password or @; set": [
        {"url": url} for url in ("http://scraper:hunter2@prometheus:9090", "scraper:hunter2@prometheus")
    ],
    "bearer-token": [{"bearer-token": token} for token in ("hunter2\r\nX-Other: 1", "hunter2 hunter2", "hunter2ä")],
}


@pytest.mark.parametrize(
    ("sentence", "section"), [(sentence, section) for sentence, sections in WRONG.items() for section in sections]
)
def test_wrong_properties_are_refused_with_a_sentence(sentence: str, section: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as error:
        section_of(section)
    assert sentence in str(error.value)
    assert not [secret for secret in ("hunter2", "scraper", "secret-word") if secret in str(error.value)]


@pytest.mark.parametrize(("interval", "longest"), [("30s", 60), ("50s", 100), ("1h", 7200)])
def test_answers_hold_for_validity_or_two_intervals(source: Make, clock: Clock, interval: str, longest: float) -> None:
    plugin = source(interval=interval)
    answered(plugin)
    clock.now += longest
    assert plugin.read() == KNOWN
    clock.now += 1
    silent = plugin.read()
    assert silent is not None
    assert (silent.volumes, len(silent.unknown)) == (KNOWN.volumes, 1)


def test_a_file_of_certificates_that_is_not_there_is_refused(tmp_path: Path) -> None:
    own = section_of({"ca-location": str(tmp_path / "no.pem")}, "https://prometheus")
    with pytest.raises(ValueError, match="ca-location can't be read: No such file"):
        Prometheus(context(name="prometheus", own=own))
