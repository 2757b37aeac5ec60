"""The factor source ``prometheus``: asks a Prometheus server for the volumes of the cluster.

Proposal 035 names other suppliers of volumes than Kafka's own; this is one. Broker properties, all under
``client.quota.callback.``::

    factor.source=prometheus
    plugin.prometheus.url=http://prometheus:9090
    plugin.prometheus.capacity=node_filesystem_size_bytes{job="kafka",mountpoint=~"/data.*"}
    plugin.prometheus.available=node_filesystem_avail_bytes{job="kafka",mountpoint=~"/data.*"}
    plugin.prometheus.expected=kafka-1:9100,kafka-2:9100,kafka-3:9100

Without ``expected`` a broker whose exporter is gone looks like one that was taken out of the cluster: Prometheus
gives no series for it, and nothing is unknown. If Prometheus stopped scraping without noticing, it answers with
samples of up to five minutes ago (its ``--query.lookback-delta``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from quotahost.api import Context
from quotahost.background import Periodic
from quotahost.broker.plugins.factor_sources.prometheus.promql import Credentials, PromQL, QueryFailed
from quotahost.broker.plugins.factor_sources.prometheus.settings import PrometheusSettings
from quotahost.broker.plugins.factor_sources.prometheus.volumes import Volumes
from quotahost.model import ClusterVolumes

_CLOSE_WITHIN: Final = 2.0  # seconds; only a look-up of the host's name can hold the thread for longer


class Prometheus:
    """Asks every ``interval``, on a thread of its own; ``read`` answers from memory.

    The thread starts with the first ``read``, so that a source which is built and then not used asks nobody. A live
    change of its properties builds it anew.
    """

    Section = PrometheusSettings

    def __init__(self, context: Context[PrometheusSettings], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic.

        Raises:
            ValueError: ``interval`` is not below ``validity``, or ``ca-location`` can't be read.
        """
        own = context.section
        # Otherwise every answer would be too old before the next one came.
        if own.interval >= context.settings.validity:
            raise ValueError(f"plugin.{context.name}.interval must be below validity; set it lower")
        self._context, self._own, self._clock = context, own, clock
        self._client = _client(own)
        self._volumes = Volumes(own.broker_label, own.volume_label, own.expected)
        self._host = urlsplit(own.url).hostname
        self._last: tuple[float, ClusterVolumes] | None = None  # replaced as one, so it needs no lock
        self._reason, self._logged = "", ""
        self._pause = 0.0
        self._loop: Periodic | None = None
        self._closed = False

    def read(self) -> ClusterVolumes | None:
        """The last volumes, None before the first answer. Once they are older than ``validity`` they are unknown."""
        last = self._last
        if self._loop is None:
            # No thread of the context: this one asks a server and never the broker, so it never calls into Java.
            self._loop = Periodic("prometheus", self._work, lambda: self._pause)
        if last is None:
            return None
        asked_at, volumes = last
        validity = self._context.settings.validity.total_seconds()
        if self._clock() - asked_at <= validity:
            return volumes
        # The sentence names no age: the cause of the factor would be a new one every second.
        long = f"has not answered for more than validity ({validity:g} s)"
        silent = f"prometheus {self._host} {long}: {self._reason or 'no reason yet'}"
        return ClusterVolumes(volumes.volumes, (silent,))

    def close(self) -> None:
        """End the thread; a query under way is aborted."""
        # Set first, so that the query which abort() ends is not logged as a fault.
        self._closed = True
        self._client.abort()
        if self._loop is not None:
            self._loop.close(_CLOSE_WITHIN)

    def _work(self) -> None:
        begin, interval = time.monotonic(), self._own.interval.total_seconds()
        self._ask()
        # A server that takes longer than the interval still gets some rest.
        self._pause = max(interval - (time.monotonic() - begin), interval / 10)

    def _ask(self) -> None:
        own = self._own
        asked_at = self._clock()  # before the question, so that the answer is no younger than it seems
        try:
            capacity = self._client.query(own.capacity)
            used = self._client.query(own.available or own.consumed or "")
            volumes = self._volumes.of(capacity, used, available=own.available is not None)
        except QueryFailed as error:
            self._failed(str(error))
        except Exception as error:  # the thread must outlive any answer; the error's text may contain anything
            self._failed(f"{type(error).__name__} while reading the answer")
        else:
            self._last = (asked_at, volumes)
            self._log("unknown" if volumes.unknown else "", "; ".join(volumes.unknown))

    def _failed(self, reason: str) -> None:
        self._reason = reason
        self._log("failed", reason)

    def _log(self, fault: str, reason: str) -> None:
        """Log a kind of fault once, until there is another kind or none."""
        # By the kind of fault, as its words may change with each answer.
        if fault == self._logged or self._closed:
            return
        self._logged, log = fault, self._context.log
        if fault == "failed":
            log.error("prometheus %s gives no answer; the last holds for validity: %s", self._host, reason)
        elif fault:
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
