"""The Prometheus endpoint of ``metrics.port``: the catalogue's metrics, as Java last reported them.

A thread reads all numbers from Java once a second and keeps them; a scrape is answered from what was kept, because a
scrape's thread that called Java would stay attached to the JVM. Who uses what is read more rarely (``client_series``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotahost.background import Periodic, start_daemon
from quotahost.broker.host.client_series import ClientSeries, Series
from quotahost.broker.host.looks import gauges, uses
from quotahost.broker.host.messages import Gauge
from quotahost.broker.host.shim import Shim
from quotahost.metrics import CATALOGUE, CLIENTS, Kind
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, Problem, SettingsError

INTERVAL: Final = 1.0  # seconds between readings


class _Collect(Collector):
    """Makes Prometheus metrics of the newest numbers."""

    def __init__(self) -> None:
        self.latest: list[Gauge] = []
        self.clients: Series = {}

    def collect(self) -> Iterable[Metric]:
        # The catalogue decides: numbers under a plugin's own names are shown by JMX alone.
        for described in CATALOGUE:
            family = CounterMetricFamily if described.kind is Kind.COUNTER else GaugeMetricFamily
            labels = described.label.split(", ") if described.label else []
            metric = family(f"quotahost_{described.prometheus}", described.help, labels=labels)
            if described.type == CLIENTS:
                for names, value in self.clients.get(described.attribute, {}).items():
                    metric.add_metric(names, value)
                yield metric
                continue
            for gauge in self.latest:
                if (gauge.type, gauge.attribute) == (described.type, described.attribute):
                    metric.add_metric([gauge.name] if labels else [], gauge.value)
            yield metric


class Exporter:
    """The HTTP server, and the thread that reads the numbers."""

    def __init__(
        self,
        address: str,
        port: int,
        gauges: Callable[[], list[Gauge]],
        detach: Callable[[], None],
        clients: ClientSeries | None = None,
    ) -> None:
        """Serve what ``gauges`` and ``clients`` return; the thread that calls them calls ``detach`` as its last act.

        Raises:
            OSError: the address can't be bound.
        """
        self._gauges, self._clients, self._collect = gauges, clients, _Collect()
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
        if self._clients is not None:
            self._collect.clients = self._clients.read()


def exporter(settings: Settings, shim: Shim) -> Exporter | None:
    """The endpoint of ``metrics.port``, None if none is set.

    Raises:
        SettingsError: the address can't be bound.
    """
    if settings.metrics_port is None:
        return None
    clients = ClientSeries(partial(uses, shim.ask), settings.metrics_clients) if settings.metrics_clients else None
    try:
        return Exporter(
            settings.metrics_address, settings.metrics_port, partial(gauges, shim.ask), shim.detach, clients
        )
    except OSError as error:
        wrong = f"{settings.metrics_address} can't be listened on there ({error}); give a free port"
        raise SettingsError([Problem(f"{PREFIX}metrics.port", wrong, str(settings.metrics_port))]) from error
