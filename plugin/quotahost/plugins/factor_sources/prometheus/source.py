"""The factor source ``prometheus``: volumes as a Prometheus server knows them.

Proposal 035 names other suppliers of volumes than Kafka's own; this is one. Broker properties, all under
``client.quota.callback.``::

    factor.source=prometheus
    plugin.prometheus.url=http://prometheus:9090
    plugin.prometheus.capacity=node_filesystem_size_bytes{job="kafka",mountpoint=~"/data.*"}
    plugin.prometheus.available=node_filesystem_avail_bytes{job="kafka",mountpoint=~"/data.*"}
    plugin.prometheus.expected=kafka-1:9100,kafka-2:9100,kafka-3:9100

Without ``expected`` a broker whose exporter is gone looks like one that was taken out of the cluster: Prometheus
gives no series for it, and nothing is unknown. Prometheus also answers with samples of up to five minutes ago
(its ``--query.lookback-delta``) if it stopped scraping without noticing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from quotahost.api import Context
from quotahost.model import ClusterVolumes
from quotahost.plugins.factor_sources.prometheus.promql import Credentials, PromQL, QueryFailed
from quotahost.plugins.factor_sources.prometheus.settings import PrometheusSettings
from quotahost.plugins.factor_sources.prometheus.volumes import Volumes

JOIN_WITHIN: Final = 2.0  # seconds; only a look-up of the host's name can hold the thread for longer


class Prometheus:
    """Asks on a thread of its own, every ``interval``; ``read`` answers from memory.

    The thread starts with the first ``read``, so that one that is built and then not used asks nobody.
    A live change of its properties builds it anew.
    """

    Section = PrometheusSettings

    def __init__(
        self, context: Context[PrometheusSettings], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``clock`` in seconds, monotonic.

        Raises:
            ValueError: ``interval`` is not below ``validity``, or ``ca-location`` can't be read.
        """
        own = context.section
        if own.interval >= context.settings.validity:
            raise ValueError(f"plugin.{context.name}.interval must be below validity; set it lower")
        self._context, self._clock = context, clock
        self._client = _client(own)
        self._volumes = Volumes(own.broker_label, own.volume_label, own.expected)
        self._host = urlsplit(own.url).hostname
        self._last: tuple[float, ClusterVolumes] | None = None  # replaced as one, so it needs no lock
        self._reason, self._told = "", ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quotahost-prometheus", daemon=True)

    def read(self) -> ClusterVolumes | None:
        """The last volumes; once they are older than ``validity``, that they are. None before the first."""
        if self._thread.ident is None:
            self._thread.start()
        last = self._last
        if last is None:
            return None
        asked_at, told = last
        validity = self._context.settings.validity.total_seconds()
        if self._clock() - asked_at <= validity:
            return told
        # No age in it: who compares sentences would see a new one every second.
        long = f"has not answered for more than validity ({validity:g} s)"
        silent = f"prometheus {self._host} {long}: {self._reason or 'no reason yet'}"
        return ClusterVolumes(told.volumes, (silent,))

    def close(self) -> None:
        """End the thread; a query under way is aborted."""
        self._stop.set()
        self._client.abort()
        if self._thread.ident is not None:
            self._thread.join(JOIN_WITHIN)

    def _run(self) -> None:
        interval = self._context.section.interval.total_seconds()
        while not self._stop.is_set():
            begin = time.monotonic()
            self._ask()
            # A server that takes longer than the interval still gets some rest.
            self._stop.wait(max(interval - (time.monotonic() - begin), interval / 10))

    def _ask(self) -> None:
        own = self._context.section
        asked_at = self._clock()  # before the question, so that the answer is no younger than it seems
        try:
            capacity = self._client.query(own.capacity)
            used = self._client.query(own.available or own.consumed or "")
            told = self._volumes.of(capacity, used, available=own.available is not None)
        except QueryFailed as error:
            self._failed(str(error))
        except Exception as error:  # the thread must outlive any answer; the text may hold anything
            self._failed(f"{type(error).__name__} while reading the answer")
        else:
            self._last = (asked_at, told)
            self._tell("unknown" if told.unknown else "", "; ".join(told.unknown))

    def _failed(self, reason: str) -> None:
        self._reason = reason
        self._tell("failed", reason)

    def _tell(self, trouble: str, reason: str) -> None:
        """Log a kind of trouble once, until there is another kind, or none."""
        if trouble == self._told or self._stop.is_set():
            return
        self._told, log = trouble, self._context.log
        if trouble == "failed":
            log.error("prometheus %s gives no answer; the last holds for validity: %s", self._host, reason)
        elif trouble:
            log.error("prometheus %s does not know all volumes: %s", self._host, reason)
        else:
            log.warning("prometheus %s knows all volumes again", self._host)


def _client(own: PrometheusSettings) -> PromQL:
    token = own.bearer_token.get_secret_value() if own.bearer_token else ""
    password = own.password.get_secret_value() if own.password else ""
    credentials = Credentials(token, own.username or "", password)
    try:
        return PromQL(own.url, own.timeout.total_seconds(), credentials, own.ca_location)
    except OSError as error:
        raise ValueError(f"ca-location can't be read: {error.strerror or type(error).__name__}") from None
