"""The supplier ``cluster-quota``: one quota for a client in the whole cluster, wherever it writes and reads.

KIP-13 has no cluster-wide quotas because brokers don't know each other's usage. Here the quotas are records of
``__quotahost_quotas``, which each broker follows (``broker.plugins.cluster_quota.quotas``). The task ``publish-usage``
of every broker publishes what its clients use of them, the pipeline divides each quota by demand, and this supplier
reads the share of its broker (``broker.plugins.cluster_quota.share_book``). Without fresh shares each broker gives an
equal part, so the sum never exceeds the quota.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from quotahost.api import Context
from quotahost.background import LoggedOnce, Periodic
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas, ClusterQuotaSettings
from quotahost.broker.plugins.cluster_quota.share_book import Conditions, ShareBook
from quotahost.kafka.follower import Follower
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.model import Client, ClientUsage, Cluster, Quota, QuotaType, Scope
from quotahost.records.clients import ClientKey
from quotahost.records.codec import Refused
from quotahost.records.shares import decode, partition_of
from quotahost.throttling.quota_window import quota_window

_EVERY: Final = 0.5  # seconds between looks
_REST: Final = 9  # times the length of a look, the pause after it: a look may take a tenth of the time
_MOST: Final = 2000  # clients to ask the broker about
_TYPES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)


class ClusterQuota:
    """Gives each client (user and client-id) this broker's share of its quota; the next supplier has all others.

    Nobody produces to or fetches from a node that is only a controller, so nothing is followed there.
    """

    Section = ClusterQuotaSettings

    def __init__(self, context: Context[ClusterQuotaSettings]) -> None:
        """Begin to follow the shares."""
        self._context = context
        window = quota_window(context.broker.properties())
        self._book = ShareBook(window, time.monotonic, time.time)
        # Guards the book, which the host thread, the follower's, the one of the brokers and the looking one all use.
        self._lock = threading.Lock()
        self._own = str(context.node_id).encode()
        self._cluster = ""
        self._registered = self._alive = 0
        self._pause = _EVERY
        self._was_fresh: bool | None = None  # None before the first fresh shares
        self._failure = LoggedOnce(context.log, logging.ERROR)
        self._looks: Periodic | None = None  # None where nothing is followed
        if "broker" in (context.broker.properties().get("process.roles") or "broker"):
            self._begin()

    def _begin(self) -> None:
        context, settings = self._context, self._context.settings
        silence = 3 * settings.validity.total_seconds()
        # All other brokers' shares would come along otherwise: with a thousand of them tens of megabytes a second.
        own = partial(partition_of, str(context.node_id))
        self._quotas = ClusterQuotas(context)
        self._follower = Follower(context, settings.shares_topic, self, silence, partition_of=own)
        self._registered_brokers = RegisteredBrokers(context, self._on_registered_brokers)
        self._looks = Periodic(f"{context.name}-steps", self._try_to_look, lambda: self._pause, context.start_thread)

    # ---- the host thread ----

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The client's share, or None (the next supplier is asked) if it has no cluster-wide quota."""
        if quota_type not in _TYPES or self._looks is None:
            return None
        key = ClientKey(client.principal, client.client_id, quota_type)
        try:
            quota = self._quotas.find(key)
        except KeyError:
            return None
        # Unlimited is an answer: the next supplier must not limit the client after all.
        if quota is None:
            return Quota(None, Scope.CLIENT)
        with self._lock:
            return Quota(self._book.rate(key, quota), Scope.CLIENT)

    def distinct_client_ids(self, principal: str) -> Collection[str] | None:
        """The client-ids with a quota; None where each client of the principal has one, and so a share of its own."""
        return self._quotas.distinct_client_ids(principal) if self._looks else frozenset()

    def cluster_changed(self, cluster: Cluster) -> None:
        """The brokers that are alive, which are known before the registered ones."""
        self._cluster, self._alive = cluster.cluster_id, len(cluster.brokers)
        self._count_brokers()

    def close(self) -> None:
        """End the threads and the client."""
        if self._looks:
            self._quotas.close()
            self._follower.close()
            self._registered_brokers.close()
            self._looks.close()

    def _wake(self) -> None:
        """Have the looking thread look at once."""
        if self._looks:
            self._looks.wake()

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        """See quotahost.kafka.follower.Reader."""
        # Several brokers may share a partition.
        if key != self._own:
            return
        if value is None:
            with self._lock:
                self._book.remove()
        else:
            self._take(key, value, live, written_ms)
        self._wake()

    def caught_up(self) -> None:
        """See quotahost.kafka.follower.Reader."""

    def _take(self, key: bytes, value: bytes, live: bool, written_ms: int | None) -> None:
        try:
            shares = decode(key, value)
        except Refused as problem:
            self._context.metrics.count("Refused", problem.reason, "Records")
            self._context.log.debug("refused a record: %s", problem)
            return
        # The key is a broker's id alone, and other clusters have the same ids. Either cluster's id may be unknown yet.
        if shares.cluster and self._cluster and shares.cluster != self._cluster:
            self._context.metrics.count("Refused", "cluster", "Records")
            return
        with self._lock:
            self._book.take(shares, live, self._context.settings.validity.total_seconds(), written_ms)

    # ---- the thread that asks for the registered brokers ----

    def _on_registered_brokers(self, brokers: Mapping[str, bool]) -> None:
        self._registered = len(brokers)
        self._count_brokers()

    def _count_brokers(self) -> None:
        with self._lock:
            # The larger number gives the smaller parts, so that together they don't exceed the quota.
            before, self._book.brokers = self._book.brokers, max(1, self._registered, self._alive)
            changed = self._book.brokers != before
        if changed:
            self._context.answers_changed()
            self._wake()

    # ---- the looking thread ----

    def _try_to_look(self) -> None:
        started = time.monotonic()
        try:
            self.look()
            self._failure.healed()
        # Whatever fails, the thread must go on, or no client would get another share until the broker is restarted.
        except Exception:
            self._failure.report("working out the shares failed; what was given last stays", exc_info=True)
        self._pause = max(_EVERY, _REST * (time.monotonic() - started))

    def look(self) -> None:
        """Announce the quotas that changed, work out the rate of each client, and announce those that changed."""
        for entity in self._quotas.take_changed():
            self._context.answers_changed(principal=entity.user, client_id=entity.client_id)
        settings = self._context.settings
        validity, max_mute = settings.validity.total_seconds(), settings.max_mute.total_seconds()
        # Asked outside the lock, for which quota() waits on the host thread. If the broker can't answer, this
        # raises before a smaller share could mute anybody.
        used = self._used(validity)
        with self._lock:
            conditions = Conditions(validity, settings.floor_bytes, max_mute)
            changed = self._book.look(self._quotas, used, conditions)
            fresh, age = self._book.fresh(validity), self._book.age()
            brokers, shared = self._book.brokers, self._book.shared
        # Only now: the host asks again at once, and must find the new rates in the book.
        for key in changed:
            self._context.answers_changed(principal=key.principal, client_id=key.client_id)
        self._show(fresh, age, brokers, shared)

    def _used(self, validity: float) -> list[ClientUsage]:
        """The usage of the clients. The broker isn't asked where no shares are or were, since nothing can change."""
        with self._lock:
            needless = not self._book.shared and not self._book.fresh(validity)
        return [] if needless else self._context.broker.usage(_MOST)

    def _show(self, fresh: bool, age: float, brokers: int, shared: int) -> None:
        self._quotas.show()
        metrics = self._context.metrics
        if age < math.inf:
            metrics.gauge("Shares", "", "Age", age)
        metrics.gauge("Shares", "", "Stale", 0 if fresh else 1)
        metrics.gauge("Shares", "", "Clients", shared)
        metrics.gauge("Shares", "", "Brokers", brokers)
        self._log_change(fresh, brokers)

    def _log_change(self, fresh: bool, brokers: int) -> None:
        """Log when shares come and go, but not that there are none yet."""
        log, before = self._context.log, self._was_fresh
        if before is None and fresh:
            log.info("the shares of the cluster-wide quotas are there")
        elif before and not fresh:
            log.warning("the shares are stale: each broker gives an equal part of a quota, 1/%d", brokers)
        elif before is False and fresh:
            log.warning("the shares are there again")
        self._was_fresh = fresh if before is not None or fresh else None
