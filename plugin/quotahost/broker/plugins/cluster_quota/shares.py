"""The supplier ``cluster-quota`` gives each client this broker's part of the client's cluster-wide quota.

KIP-13 has no cluster-wide quotas because brokers don't know each other's usage. Here the task ``publish-usage`` of
every broker publishes how much its clients use. The pipeline divides each quota by demand, and publishes each broker's
shares. Twice a second a thread of this supplier computes each client's rate, which moves to the share in steps that
mute no client for long. The thread announces the changed rates, and the host asks the supplier again. If there are no
fresh shares, each broker gives an equal part, so the sum of the parts never exceeds the quota.
"""

import logging
import math
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce, Periodic
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas, ClusterQuotaSettings
from quotahost.broker.plugins.cluster_quota.usage import Demands, by_client
from quotahost.kafka.follower import Follower
from quotahost.kafka.latest_record import LatestRecord
from quotahost.kafka.listeners import Listeners
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.model import UNLIMITED, Client, ClientUse, Cluster, Quota, QuotaType, Scope
from quotahost.records.codec import Refused
from quotahost.records.shares import Share, Shares, decode, partition_of
from quotahost.records.topics import SHARES
from quotahost.records.usage import ClientKey
from quotahost.settings.broker import Settings
from quotahost.throttling import quota_window

# ---- the rate that each client is given ----

# Each new rate makes Kafka scan all its sensors, so the supplier does not announce small changes.
_CHANGE: Final = 0.1  # of a client's rate: such a change is announced immediately
_SLIGHT: Final = 0.01  # of a client's rate: such a change is announced if the rate is older than _SETTLED
_SETTLED: Final = 10.0  # seconds
_BEGINS: Final = 3.0  # seconds until the shares consider a client that starts to use this broker


@dataclass(slots=True)
class _Given:
    """A client's rate in bytes/s, its start in monotonic seconds, and whether it comes from a fresh share."""

    rate: float
    since: float
    fresh: bool


class GivenRates:
    """Keeps the latest record (``quotahost.kafka.latest_record``) and the rate that each client gets on this broker.

    A client without a fresh share gets an equal part: its quota divided by the number of registered brokers. A client
    gets at least the equal part while it is silent on this broker, and for ``_BEGINS`` after it starts. If the client
    uses its quota elsewhere, its share here is only a small reserve, and Kafka would mute its first burst for minutes.
    """

    def __init__(self, window: float, clock: Clock, wall: Clock) -> None:
        self._clock, self._window = clock, window
        self._demands = Demands(window)
        self.latest: LatestRecord[Shares] = LatestRecord(clock, wall)
        #: The clients that have a share, and those whose rate still moves from a share to the equal part.
        self.shared: dict[ClientKey, _Given] = {}
        self._begun: dict[ClientKey, float] = {}
        self.brokers = 1  # the number of registered brokers, at least 1; the supplier sets it

    def rate(self, key: ClientKey, quota: float) -> float:
        """Bytes/s that a client with this cluster-wide quota gets on this broker now."""
        given = self.shared.get(key)
        # A lowered quota applies immediately and not only after the next look.
        return min(given.rate, quota) if given else self._part(quota)

    def look(self, quotas: ClusterQuotas, used: list[ClientUse], settings: Settings) -> list[ClientKey]:
        """Compute each client's rate from its use on this broker now; return the clients whose rate has changed."""
        now, (latest, age) = self._clock(), self.latest.read()
        fresh = latest.clients if latest and age <= settings.validity.total_seconds() else ()
        shares = {share.key: share for share in fresh}
        uses = by_client(used)
        self._demands.look(uses, now)
        self._begun = {key: self._begun.get(key, now) for key in uses.keys() - self._demands.silent}
        changed: list[ClientKey] = []
        given: dict[ClientKey, _Given] = {}
        # A client that loses its share moves to its equal part in steps, too. Stale shares are lost shares.
        for key in self.shared.keys() | shares.keys():
            quota = quotas.rate(*key)
            if quota is None or quota == math.inf:
                continue
            share = shares.get(key)
            before = self.shared.get(key) or _Given(self._part(quota), now - _SETTLED, False)
            wanted = self._wanted(key, quota, share, now, settings.floor_bytes)
            after = self._step(before, wanted, uses.get(key), settings.max_mute.total_seconds())
            if after != before.rate and _worth_it(before, after, share is not None, now):
                changed.append(key)
                before = _Given(after, now, share is not None)
            # A client without a share that is back at its equal part is forgotten: rate() computes the equal part.
            if share is not None or before.rate != self._part(quota):
                given[key] = before
        # The whole dict is replaced, so clients without a quota are forgotten.
        self.shared = given
        return changed

    def _part(self, quota: float) -> float:
        return quota / self.brokers

    def _wanted(self, key: ClientKey, quota: float, share: Share | None, now: float, floor: float) -> float:
        """The rate that the client would have if no step had to avoid a long mute."""
        part = self._part(quota)
        if share is None:
            return part
        # The pipeline may not know a new quota yet, so the share's fraction applies to the new quota. The fraction is
        # at most 1: a forged record may state a tiny quota, and dividing by it would make the rate infinite.
        shared = share.share if share.quota == quota else quota * min(1.0, share.share / share.quota)
        # Until the pipeline knows that a client has started here, its share is only the reserve of each broker: a
        # twentieth of an equal part (ADR 11).
        begun = self._begun.get(key)
        considered = begun is not None and now - begun >= _BEGINS
        # floor.bytes raises no rate above the equal part: the floors of all brokers could exceed the quota.
        return min(quota, max(shared, min(part, floor) if considered else part))

    def _step(self, before: _Given, wanted: float, used: ClientUse | None, max_mute: float) -> float:
        """The wanted rate, or the next lower rate on the way down that the client's measured rate allows."""
        # A higher rate mutes no client, and Kafka doesn't mute a client that it doesn't measure.
        if wanted >= before.rate or used is None:
            return wanted
        # Kafka mutes for (rate - limit) / limit x window (QuotaUtils.throttleTime). At ``lowest`` that is max_mute.
        lowest = used.rate * self._window / (self._window + max_mute)
        return max(wanted, min(before.rate, lowest))


def _worth_it(before: _Given, after: float, fresh: bool, now: float) -> bool:
    change = abs(after - before.rate)
    slight = change >= _SLIGHT * before.rate and now - before.since >= _SETTLED
    return fresh != before.fresh or change >= _CHANGE * before.rate or slight


# ---- the supplier ----

_EVERY: Final = 0.5  # seconds between looks
_REST: Final = 9  # the pause after a look is 9 times as long as the look, so looks take at most a tenth of the time
_MOST: Final = 2000  # clients of which the supplier reads the usage


class ClusterQuota:
    """Gives each client (user and client-id) this broker's share of its quota.

    The next supplier decides for clients without a cluster-wide quota. Clients don't produce to or fetch from a node
    that is only a controller, so the supplier follows no topic there.
    """

    Section = ClusterQuotaSettings

    def __init__(self, context: Context[ClusterQuotaSettings]) -> None:
        topic, properties = context.settings.named(SHARES), context.broker.properties()
        self._context = context
        self._given = GivenRates(quota_window(properties), time.monotonic, time.time)
        # Guards the number of brokers, which two threads set. A look holds the lock, too: when the number changes, the
        # host asks again for all clients, and a look with the former number could change a rate unannounced after that.
        self._counting = threading.Lock()
        self._cluster = ""
        self._registered = self._alive = 0
        self._stale, self._failure = LoggedOnce(context.log), LoggedOnce(context.log, logging.ERROR)
        self._looks: Periodic | None = None  # None if no topic is followed
        if Listeners(properties).controller_alone:
            return
        context.closing.callback(context.metrics.forget, "Shares", "")
        # The other partitions have the shares of other brokers: with 1,000 brokers tens of megabytes a second.
        own_partition = partial(partition_of, str(context.node_id))
        self._quotas = ClusterQuotas(context, changed=context.answers_changed)
        self._follower = Follower(context, topic, self.record, self._silence, partition_of=own_partition)
        self._registered_brokers = RegisteredBrokers(context, self._on_registered_brokers)
        name = f"{context.name}-steps"
        self._looks = Periodic(name, self._try_to_look, lambda: _EVERY, context.start_thread, _REST)
        context.closing.callback(self._looks.close)

    # ---- the host thread ----

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The client's share, or None (the next supplier is asked) if it has no cluster-wide quota."""
        if self._looks is None:
            return None
        key = ClientKey(client.principal, client.client_id, quota_type)
        quota = self._quotas.rate(*key)
        if quota is None:
            return None
        # Unlimited is an answer, too: the next supplier must not limit the client.
        if quota == math.inf:
            return UNLIMITED
        return Quota(self._given.rate(key, quota), Scope.CLIENT)

    def distinct_client_ids(self, principal: str) -> Collection[str] | None:
        """The client-ids with a quota, or None if each client of the principal has a quota and so its own share."""
        return self._quotas.distinct_client_ids(principal) if self._looks else frozenset()

    def cluster_changed(self, cluster: Cluster) -> None:
        """Count the brokers that are alive; Kafka reports them before the registered brokers are known."""
        self._cluster, self._alive = cluster.cluster_id, len(cluster.brokers)
        self._count_brokers()

    # ---- the follower's thread ----

    def _silence(self) -> float:
        return 3 * self._context.settings.validity.total_seconds()

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        # Several brokers may share a partition.
        if key != str(self._context.node_id).encode():
            return
        shares = None if value is None else decode(key, value)
        # The key is only a broker's id, and other clusters use the same ids. Either cluster's id may still be unknown.
        if shares and shares.cluster and self._cluster and shares.cluster != self._cluster:
            raise Refused("cluster", f"it is for the cluster {shares.cluster}")
        if shares is None:
            self._given.latest.remove()
        else:
            self._given.latest.take(shares, live, self._context.settings.validity.total_seconds(), written_ms)

    # ---- the thread that asks for the registered brokers ----

    def _on_registered_brokers(self, brokers: Mapping[str, bool]) -> None:
        self._registered = len(brokers)
        self._count_brokers()

    def _count_brokers(self) -> None:
        with self._counting:
            # The larger number gives smaller parts, so the sum of the parts doesn't exceed the quota.
            before, self._given.brokers = self._given.brokers, max(1, self._registered, self._alive)
            changed = self._given.brokers != before
        if changed:
            self._context.answers_changed()

    # ---- the looking thread ----

    def _try_to_look(self) -> None:
        # Without this thread no share would change until the broker is restarted.
        with self._failure.caught("computing the shares failed; the last rates stay in force"):
            self.look()

    def look(self) -> None:
        """Compute the rate of each client, and announce the changed rates."""
        settings = self._context.settings
        validity = settings.validity.total_seconds()
        # If there are no shares and no rates of former shares, no rate can change.
        needed = self._given.shared or self._given.latest.read()[1] <= validity
        # If the broker can't answer, usage() raises before a smaller share can mute a client.
        used = self._context.broker.usage(_MOST) if needed else []
        with self._counting:
            changed = self._given.look(self._quotas, used, settings)
        # Announced after the rates are set: the host asks again immediately and must find the new rates.
        for key in changed:
            self._context.answers_changed(principal=key.principal, client_id=key.client_id)
        self._quotas.show()
        (shares, age), brokers = self._given.latest.read(), self._given.brokers
        numbers = {"Age": age, "Stale": float(age > validity), "Clients": len(self._given.shared), "Brokers": brokers}
        for attribute, number in numbers.items():
            if number < math.inf:
                self._context.metrics.gauge("Shares", "", attribute, number)
        if age <= validity:
            self._stale.healed("fresh shares arrive again")
        elif shares:  # before the first shares, nothing is logged
            self._stale.report("no fresh shares from the pipeline: each broker gives 1/%d of each quota", brokers)
