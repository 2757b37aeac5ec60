"""The Prometheus endpoint: what the catalogue of metrics names, as the shim last told it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotahost.host.messages import Gauge
from quotahost.metrics import CATALOGUE, Kind
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, Problem, SettingsError


class _Collect(Collector):
    """Reads the shim's numbers on its own schedule: a scrape never enters Java."""

    def __init__(self) -> None:
        self.latest: list[Gauge] = []

    def collect(self) -> Iterable[Metric]:
        for described in CATALOGUE:
            family = CounterMetricFamily if described.kind is Kind.COUNTER else GaugeMetricFamily
            labels = [described.label] if described.label else []
            metric = family(f"quotahost_{described.prometheus}", described.help, labels=labels)
            for gauge in self.latest:
                if (gauge.type, gauge.attribute) == (described.type, described.attribute):
                    metric.add_metric([gauge.name] if labels else [], gauge.value)
            yield metric


class Exporter:
    """The Prometheus endpoint. Reads the numbers on a thread of its own, so that no scrape enters Java."""

    def __init__(
        self,
        address: str,
        port: int,
        gauges: Callable[[], list[Gauge]],
        detach: Callable[[], None],
        interval: float = 1.0,
    ) -> None:
        """Serve what ``gauges`` gives, read every ``interval`` seconds.

        Raises:
            OSError: the address can't be bound.
        """
        self._gauges, self._detach, self._interval = gauges, detach, interval
        self._stop = threading.Event()
        self._collect = _Collect()
        registry = CollectorRegistry()
        registry.register(self._collect)
        self._server, self._serving = start_http_server(port, address, registry)
        self._reading = threading.Thread(target=self._read, name="quotahost-metrics", daemon=True)
        self._reading.start()

    def close(self) -> None:
        """Give the port back and end both threads."""
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._serving.join(1)
        self._reading.join(1)

    def _read(self) -> None:
        while True:
            self._collect.latest = self._gauges()
            if self._stop.wait(self._interval):
                break
        self._detach()


def exporter(
    settings: Settings, gauges: Callable[[], list[Gauge]], detach: Callable[[], None]
) -> Exporter | None:
    """The endpoint of ``metrics.port``, None if none is set.

    Raises:
        SettingsError: the address can't be bound.
    """
    if settings.metrics_port is None:
        return None
    try:
        return Exporter(settings.metrics_address, settings.metrics_port, gauges, detach)
    except OSError as error:
        wrong = f"{settings.metrics_address} can't be listened on there ({error}); give a free port"
        raise SettingsError([Problem(f"{PREFIX}metrics.port", wrong, str(settings.metrics_port))]) from error
