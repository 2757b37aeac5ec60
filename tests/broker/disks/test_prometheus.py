"""The factor source ``prometheus`` against a real Prometheus that scrapes an exporter."""

from collections.abc import Iterator
from typing import Final

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from harness.system.ports import free_port
from harness.system.waiting import eventually
from quotahost.api import Role
from quotahost.broker.plugins.factor_sources.prometheus import Prometheus
from quotahost.model import ClusterVolumes, Volume
from quotahost.testing.host import FakeHost
from tests.broker.support.prometheus import Server, job, prometheus

TB: Final = 10**12
LABELS: Final = ("instance", "mountpoint")


class Exporter:
    """An exporter that shows volumes with the metrics of node_exporter."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        names = ("node_filesystem_size_bytes", "node_filesystem_avail_bytes")
        self._gauges = [Gauge(name, "bytes", LABELS, registry=self._registry) for name in names]
        self.port = free_port()
        start_http_server(self.port, "127.0.0.1", self._registry)

    def show(self, broker: str, size: float, available: float) -> None:
        for gauge, value in zip(self._gauges, (size, available), strict=True):
            gauge.labels(broker, "/data").set(value)

    def forget(self, broker: str) -> None:
        for gauge in self._gauges:
            gauge.remove(broker, "/data")


@pytest.fixture(scope="module")
def exporter() -> Exporter:
    made = Exporter()
    made.show("kafka-1", 2 * TB, 0.5 * TB)
    made.show("kafka-2", 4 * TB, 4 * TB)
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, exporter: Exporter) -> Iterator[Server]:
    # honor_labels: the exporter stands for those of three brokers.
    config = {"scrape_configs": [job(exporter.port, honor_labels=True)]}
    with prometheus(tmp_path_factory.mktemp("prometheus"), config) as server:
        yield server


@pytest.fixture
def source(server: Server) -> Iterator[FakeHost]:
    with FakeHost(Role.FACTOR_SOURCE, Prometheus, properties(server)) as host:
        yield host


def properties(server: Server) -> dict[str, str]:
    own = {
        "url": server.url,
        "capacity": 'node_filesystem_size_bytes{mountpoint=~"/data.*"}',
        "available": 'node_filesystem_avail_bytes{mountpoint=~"/data.*"}',
        "expected": "kafka-1,kafka-2",
        "interval": "100ms",
    }
    return {"validity": "4s"} | {f"plugin.prometheus.{key}": text for key, text in own.items()}


VOLUME_1: Final = Volume("kafka-1", "/data", 2 * TB, 1_500_000_000_000)
VOLUME_2: Final = Volume("kafka-2", "/data", 4 * TB, 0)


def wait_for_volumes(source: FakeHost, *volumes: Volume) -> None:
    eventually(lambda: source.plugin.read() == ClusterVolumes(volumes), what=f"{volumes}")


def wait_for_unknown(source: FakeHost, text: str, *volumes: Volume) -> None:
    """Waits until the source knows these volumes alone and names with that text what is unknown."""

    def plugin_reports_it() -> bool:
        read: ClusterVolumes | None = source.plugin.read()
        return read is not None and read.volumes == volumes and text in " ".join(read.unknown)

    eventually(plugin_reports_it, what=text)


@pytest.mark.proves("proposal-035.other-sources")
@pytest.mark.proves("faults.prometheus-down")
def test_it_knows_what_an_exporter_shows_and_names_what_vanishes_or_is_nonsense(
    source: FakeHost, exporter: Exporter
) -> None:
    wait_for_volumes(source, VOLUME_1, VOLUME_2)
    exporter.show("kafka-2", 4 * TB, 1 * TB)
    wait_for_volumes(source, VOLUME_1, Volume("kafka-2", "/data", 4 * TB, 3 * TB))
    exporter.forget("kafka-2")
    wait_for_unknown(source, "expected broker 'kafka-2' has no volume", VOLUME_1)
    exporter.show("kafka-2", 4 * TB, 4 * TB)
    wait_for_volumes(source, VOLUME_1, VOLUME_2)
    exporter.show("kafka-1", float("nan"), 1)
    wait_for_unknown(source, "broker kafka-1, volume /data has nan as capacity", VOLUME_2)


def test_the_servers_message_about_a_wrong_query_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    wrong = properties(server) | {"plugin.prometheus.capacity": "sum("}
    with FakeHost(Role.FACTOR_SOURCE, Prometheus, wrong) as host:
        assert host.plugin.read() is None
        eventually(lambda: "the server says bad_data" in caplog.text)
        assert "parse error" in caplog.text
