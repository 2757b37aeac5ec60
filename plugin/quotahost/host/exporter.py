"""The Prometheus endpoint of ``metrics.port``: the catalogue's metrics, as Java last reported them.

A thread reads all numbers from Java once a second and keeps them; a scrape is answered from what was kept, because a
scrape's thread that called Java would stay attached to the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotahost.background import Periodic, start_daemon
from quotahost.host.messages import Gauge
from quotahost.metrics import CATALOGUE, Kind
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, Problem, SettingsError

INTERVAL: Final = 1.0  # seconds between readings


class _Collect(Collector):
    """Makes Prometheus metrics of the newest numbers."""

    def __init__(self) -> None:
        self.latest: list[Gauge] = []

    def collect(self) -> Iterable[Metric]:
        # The catalogue decides: numbers under a plugin's own names are shown by JMX alone.
        for described in CATALOGUE:
            family = CounterMetricFamily if described.kind is Kind.COUNTER else GaugeMetricFamily
            labels = [described.label] if described.label else []
            metric = family(f"quotahost_{described.prometheus}", described.help, labels=labels)
            for gauge in self.latest:
                if (gauge.type, gauge.attribute) == (described.type, described.attribute):
                    metric.add_metric([gauge.name] if labels else [], gauge.value)
            yield metric


class Exporter:
    """The HTTP server, and the thread that reads the numbers."""

    def __init__(self, address: str, port: int, gauges: Callable[[], list[Gauge]], detach: Callable[[], None]) -> None:
        """Serve what ``gauges`` returns; the thread that calls it calls ``detach`` as its last act.

        Raises:
            OSError: the address can't be bound.
        """
        self._gauges, self._collect = gauges, _Collect()
        registry = CollectorRegistry()
        registry.register(self._collect)
        self._server, self._serving = start_http_server(port, address, registry)
        self._reading = Periodic("metrics", self._read, lambda: INTERVAL, partial(start_daemon, at_end=detach))

    def close(self) -> None:
        """Give the port back and end both threads."""
        # A host that failed starts again in this process, and its endpoint needs the port.
        self._server.shutdown()
        self._server.server_close()
        self._serving.join(1)
        self._reading.close(1)

    def _read(self) -> None:
        # The list is replaced and never changed, so a scrape on a thread of the server reads it without a lock.
        self._collect.latest = self._gauges()


def exporter(settings: Settings, gauges: Callable[[], list[Gauge]], detach: Callable[[], None]) -> Exporter | None:
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
