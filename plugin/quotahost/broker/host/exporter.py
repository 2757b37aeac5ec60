"""``Exporter`` is the Prometheus endpoint of ``metrics.port``: it serves the catalogue's metrics, and series by client.

One thread reads all numbers from Java every 5 seconds, so that no scrape waits for Java. Another thread serves all
connections of the port (asyncio), and answers every GET request with the page of metrics. A client has DEADLINE to
send its request, and DEADLINE again to read its page. If there are more than CONNECTIONS (32) connections, the thread
closes the oldest one. A long name in a label is cut, and its end replaced by a hash.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from zlib import crc32

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotahost.base.background import LoggedOnce, Periodic, start_daemon
from quotahost.broker.host.broker_status import uses
from quotahost.broker.host.messages import gauges
from quotahost.broker.host.protocol import Shim
from quotahost.broker.metrics import CATALOGUE, CLIENTS, COUNTER
from quotahost.model.use import ClientUse, LimitedBy
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, Problem, SettingsError

_log = logging.getLogger("quotahost.host")

#: Seconds between two readings of Java's numbers; with 50,000 active clients a reading takes 0.1 s or more.
INTERVAL: Final = 5.0
_LONGEST_NAME: Final = 100  # characters of a label's value
DEADLINE: float = 10.0  # seconds; Prometheus' default timeout of a scrape
CONNECTIONS: Final = 32  # a page stays in memory until its client has read it; with 10,000 clients it has 100 kB
_LONGEST: Final = 16_384  # bytes of a request
_HEAD: Final = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\r\n"

#: The values by labels, for each type and attribute of the catalogue.
Series: TypeAlias = Mapping[tuple[str, str], Mapping[tuple[str, ...], float]]


# ---- the port --------------------------------------------------------------------------------------------------


class Exporter(Collector):
    """Owns the port, the thread that serves it, and the thread that reads the numbers."""

    def __init__(self, shim: Shim, address: str, port: int, clients: int) -> None:
        """``clients``: the most clients with series. Raises OSError or ValueError if it can't listen at the address."""
        self._ask, self._clients, self._fault = shim.ask, clients, LoggedOnce(_log)
        # The mapping is replaced and never changed, so that the port's thread reads it without a lock.
        self._series: Series = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._open: dict[asyncio.Task[None], None] = {}  # the oldest connection first
        self._loop = asyncio.new_event_loop()
        start = asyncio.start_server(self._serve, address, port, limit=_LONGEST)
        self._server = self._loop.run_until_complete(start)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._serving = start_daemon("metrics-port", self._loop.run_forever, self._loop.close)
        self._reading = Periodic("metrics", self._read, lambda: INTERVAL)

    def close(self) -> None:
        # A host that failed starts again in this process, and needs the port then.
        if self._serving.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            self._serving.join(3)  # a page of 10,000 clients takes a second or two
        self._reading.close(1)

    def _read(self) -> None:
        try:
            numbers: dict[tuple[str, str], dict[tuple[str, ...], float]] = defaultdict(dict)
            for gauge in gauges(self._ask):
                numbers[gauge.type, gauge.attribute][gauge.name,] = gauge.value
            self._series = {**numbers, **series(uses(self._ask, self._clients))}
        except Exception as problem:  # JPype also raises while the JVM shuts down; the thread must not end
            self._series = {key: values for key, values in self._series.items() if key[0] != CLIENTS}
            self._fault.report("The metrics can't be read (%s): metrics by client are missing, others are old", problem)
        else:
            self._fault.healed()

    def collect(self) -> Iterable[Metric]:
        # This shows the catalogue's metrics; only JMX shows numbers with a plugin's own names.
        for described in CATALOGUE:
            family = CounterMetricFamily if described.kind == COUNTER else GaugeMetricFamily
            labels = described.label.split(", ") if described.label else []
            metric = family(f"quotahost_{described.prometheus}", described.help, labels=labels)
            for names, value in self._series.get((described.type, described.attribute), {}).items():
                metric.add_metric(names if labels else [], value)
            yield metric

    async def _end(self) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._loop.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # a coroutine runs in one
        self._open[task] = None
        if len(self._open) > CONNECTIONS:
            # Remove it immediately: several new connections in one turn of the event loop must not all close this one.
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE)
            if head.startswith(b"GET "):
                writer.write(_HEAD + generate_latest(self._registry))
            writer.close()
            # A deadline of its own, because the time to make the page is not the client's fault.
            await asyncio.wait_for(writer.wait_closed(), DEADLINE)
        # A client that disconnects or sends no request gets no answer. CancelledError ends the oldest connection; if
        # it weren't caught, asyncio of Python 3.11 would log that the task was cancelled.
        except (OSError, EOFError, asyncio.CancelledError, asyncio.LimitOverrunError):
            writer.transport.abort()  # drops the rest of a page that a slow client has not read
        finally:
            self._open.pop(task, None)


def exporter(settings: Settings, shim: Shim) -> Exporter | None:
    """The endpoint of ``metrics.port``; None if the property isn't set.

    Raises SettingsError at the broker's start if the address can't be bound. A host that starts again only logs the
    error and goes on: missing metrics must not stop producers.
    """
    if settings.metrics_endpoint is None:
        return None
    address, port = settings.metrics_endpoint
    try:
        return Exporter(shim, address, port, settings.metrics_clients)
    except (OSError, ValueError) as error:  # ValueError if the address is no host name, such as 0.0.0..0
        wrong = f"{address} can't be bound ({error}); give a free port and an address of this machine"
        problem = Problem(f"{PREFIX}metrics.port", wrong, str(port))
        if not shim.restarted():
            raise SettingsError([problem]) from error
        _log.error("metrics.port serves no metrics until the Python host starts again: %s", problem)
        return None


# ---- who uses what ---------------------------------------------------------------------------------------------


def series(uses: Iterable[ClientUse]) -> Series:
    """The series by client. Clients choose their names: long names are cut here, and all names are escaped later."""
    shown: dict[tuple[str, str], dict[tuple[str, ...], float]] = defaultdict(dict)
    for use in uses:
        labels = (_cut(use.user), _cut(use.client_id), _cut(use.scope), str(use.quota_type))
        values = {"Rate": use.rate, "Quota": use.quota, "Limit": use.limit, "DelayMs": use.delay_ms / 1000}
        for attribute, value in values.items():
            if value is not None:
                shown[CLIENTS, attribute][labels] = value
        if use.bound_by != LimitedBy.NOTHING:
            shown[CLIENTS, "Bound"][*labels, use.bound_by] = 1
    return shown


def _cut(name: str) -> str:
    """Cut a name that is too long. A hash of the whole name keeps two long names with the same beginning apart."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}~{crc32(name.encode('utf-8', 'replace')):08x}"
