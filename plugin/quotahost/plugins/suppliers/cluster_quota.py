"""The supplier ``cluster-quota``: one quota for a client in the whole cluster, wherever it writes and reads.

KIP-13 left cluster-wide quotas out for want of shared usage. Here the task ``publish-usage`` of every broker shares it,
the pipeline divides each quota by demand, and this supplier reads the share of its broker. Without fresh shares each
broker gives an equal part, so the sum never exceeds the quota.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from quotahost.api import Context
from quotahost.model import Client, ClientUsage, Cluster, Quota, QuotaType, Scope
from quotahost.plugins.cluster_quota.rates import ClusterQuotaSettings, ClusterRates
from quotahost.plugins.cluster_quota.share_book import Bounds, ShareBook
from quotahost.plugins.kafka.follower import Follower
from quotahost.plugins.kafka.registered_brokers import RegisteredBrokers
from quotahost.records.clients import ClientKey
from quotahost.records.codec import Refused
from quotahost.records.shares import decode
from quotahost.throttling.quota_window import quota_window

_EVERY: Final = 0.5  # seconds
_REST: Final = 9  # a look may take a tenth of the time
_MOST: Final = 2000  # clients to ask the broker about
_TYPES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
_CLOSE_WITHIN: Final = 0.5


class ClusterQuota:
    """Gives each client (user and client-id) this broker's share of its quota; other clients and types go on.

    On a node that is a controller only nobody produces or fetches: nothing is followed there.
    """

    Section = ClusterQuotaSettings

    def __init__(
        self,
        context: Context[ClusterQuotaSettings],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin to follow the shares. ``clock`` in seconds, monotonic; ``wall`` since 1970."""
        self._context = context
        self._rates = ClusterRates(context.section)
        self._window = quota_window(context.broker.properties())
        self._book = ShareBook(self._window, clock, wall)
        self._lock = threading.Lock()
        self._own = str(context.node_id).encode()
        self._cluster = ""
        self._registered = self._alive = 0
        self._stop, self._wake = threading.Event(), threading.Event()
        self._told_fresh: bool | None = None
        self._told_failure = False
        self._threads: tuple[Any, ...] = ()
        if "broker" in (context.broker.properties().get("process.roles") or "broker"):
            self._begin()

    def _begin(self) -> None:
        context, host = self._context, self._context.settings
        self._follower = Follower(context, host.shares_topic, self, silence=3 * host.validity.total_seconds())
        self._registered_brokers = RegisteredBrokers(context, self._on_registered_brokers)
        self._thread = context.start_thread(f"{context.name}-steps", self._run)
        self._threads = (self._follower, self._registered_brokers)

    # ---- the host thread ----

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The client's share, or None (the next supplier is asked) if it has no cluster-wide quota."""
        if quota_type not in _TYPES:
            return None
        key = ClientKey(client.principal, client.client_id, quota_type)
        try:
            quota = self._rates.find(key)
        except KeyError:
            return None
        if quota is None:
            return Quota(None, Scope.CLIENT)
        with self._lock:
            return Quota(self._book.rate(key, quota), Scope.CLIENT)

    def cluster_changed(self, cluster: Cluster) -> None:
        """The brokers that are alive, known before the registered ones are."""
        self._cluster, self._alive = cluster.cluster_id, len(cluster.brokers)
        self._count_brokers()

    def reconfigure(self, settings: ClusterQuotaSettings) -> None:
        """Take other rates; the host asks again for all clients."""
        self._rates = ClusterRates(settings)
        self._wake.set()

    def close(self) -> None:
        """End the threads and the client."""
        self._stop.set()
        self._wake.set()
        for each in self._threads:
            each.close()
        if self._threads:
            self._thread.join(_CLOSE_WITHIN)

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool) -> None:
        """See quotahost.plugins.kafka.follower.Reader."""
        if key != self._own:
            return
        if value is None:
            with self._lock:
                self._book.remove()
        else:
            self._take(key, value, live)
        self._wake.set()

    def caught_up(self) -> None:
        """See quotahost.plugins.kafka.follower.Reader."""

    def _take(self, key: bytes, value: bytes, live: bool) -> None:
        try:
            shares = decode(key, value)
        except Refused as problem:
            self._context.metrics.count("Refused", problem.reason, "Records")
            self._context.log.debug("refused a record: %s", problem)
            return
        if shares.cluster and self._cluster and shares.cluster != self._cluster:
            self._context.metrics.count("Refused", "cluster", "Records")
            return
        with self._lock:
            self._book.take(shares, live, self._context.settings.validity.total_seconds())

    # ---- the thread that asks for the registered brokers ----

    def _on_registered_brokers(self, brokers: Mapping[str, bool]) -> None:
        self._registered = len(brokers)
        self._count_brokers()

    def _count_brokers(self) -> None:
        with self._lock:
            before, self._book.brokers = self._book.brokers, max(1, self._registered, self._alive)
            changed = self._book.brokers != before
        if changed:
            self._context.answers_changed()
            self._wake.set()

    # ---- the thread of its own ----

    def _run(self) -> None:
        pause = _EVERY
        while not self._stop.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            started = time.monotonic()
            self._try_to_look()
            pause = max(_EVERY, _REST * (time.monotonic() - started))

    def _try_to_look(self) -> None:
        """A failure is told once until it heals."""
        try:
            self.look()
            self._told_failure = False
        except Exception:
            if not self._told_failure:
                self._context.log.exception("working out the shares failed; what was given last stays")
            self._told_failure = True

    def look(self) -> None:
        """Work out what each client is given now, and announce what is another rate."""
        bounds = self._bounds()
        used = self._used(bounds)
        with self._lock:
            changed = self._book.look(self._rates, used, bounds)
            fresh, age = self._book.fresh(bounds.validity), self._book.age()
            brokers, shared = self._book.brokers, self._book.shared
        for key in changed:
            self._context.answers_changed(principal=key.principal, client_id=key.client_id)
        self._show(fresh, age, brokers, shared)

    def _used(self, bounds: Bounds) -> list[ClientUsage]:
        """Only where it matters: without shares nothing changes."""
        with self._lock:
            needless = not self._book.shared and not self._book.fresh(bounds.validity)
        return [] if needless else self._context.broker.usage(_MOST)

    def _bounds(self) -> Bounds:
        host, window = self._context.settings, self._window
        step = window / (window + host.max_mute.total_seconds())
        return Bounds(host.validity.total_seconds(), host.floor_bytes, step)

    def _show(self, fresh: bool, age: float | None, brokers: int, shared: int) -> None:
        metrics = self._context.metrics
        if age is not None:
            metrics.gauge("Shares", "", "Age", age)
        metrics.gauge("Shares", "", "Stale", 0 if fresh else 1)
        metrics.gauge("Shares", "", "Clients", shared)
        metrics.gauge("Shares", "", "Brokers", brokers)
        self._tell(fresh, brokers)

    def _tell(self, fresh: bool, brokers: int) -> None:
        """When they come and go; not that there are none yet."""
        log, before = self._context.log, self._told_fresh
        if before is None and fresh:
            log.info("the shares of the cluster-wide quotas are there")
        elif before and not fresh:
            log.warning("the shares are stale: each broker gives an equal part of a quota, 1/%d", brokers)
        elif before is False and fresh:
            log.warning("the shares are there again")
        self._told_fresh = fresh if before is not None or fresh else None
