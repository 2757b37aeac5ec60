"""The supplier ``cluster-quota``: the part of one quota in the whole cluster that a client gets on this broker (the
next supplier decides for who has none), an equal one without fresh shares, and in which steps it moves.

KIP-13 has no cluster-wide quotas because brokers don't know each other's usage. Here the task ``publish-usage`` of
every broker publishes what its clients use of them, and the pipeline divides each quota by demand and publishes every
broker's shares. Twice a second a thread works out which rate each client is given of its quota, in steps that mute
nobody for long, and announces those that changed; the host then asks the supplier again. Without fresh shares each
broker gives an equal part, so the sum never exceeds the quota.
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
from quotahost.records.usage import ClientKey
from quotahost.settings.broker import Settings
from quotahost.throttling import quota_window

# ---- the rate that each client is given ----

# Each new rate makes Kafka go through all its sensors, so small changes are not worth handing on.
_CHANGE: Final = 0.1  # of a client's rate: a change of so much is handed on at once
_SLIGHT: Final = 0.01  # of a client's rate: a change of so much is handed on once the rate is _SETTLED
_SETTLED: Final = 10.0  # seconds
_BEGINS: Final = 3.0  # seconds until the shares consider a client that begins to use this broker


@dataclass(slots=True)
class _Given:
    """A client's rate in bytes/s, since when it has it (monotonic seconds), and whether by a fresh share."""

    rate: float
    since: float
    fresh: bool


class GivenRates:
    """Keeps the newest record (``quotahost.kafka.latest_record``) and the rate that each client is given of it.

    Without a fresh share a client has an equal part: its quota over the number of registered brokers. It also has at
    least that while it is silent on this broker and for a moment after it began: its share of a quota that is used
    elsewhere is a small reserve, and Kafka would mute it for minutes for its first burst.
    """

    def __init__(self, window: float, clock: Clock, wall: Clock) -> None:
        self._clock, self._window = clock, window
        self._demands = Demands(window)
        self.newest: LatestRecord[Shares] = LatestRecord(clock, wall)
        #: The clients that have a share, or are still on their way from one to their equal part.
        self.shared: dict[ClientKey, _Given] = {}
        self._begun: dict[ClientKey, float] = {}
        self.brokers = 1  # that are registered, 1 or more; the supplier sets it

    def rate(self, key: ClientKey, quota: float) -> float:
        """Bytes/s that a client with this cluster-wide quota is given on this broker now."""
        given = self.shared.get(key)
        # A quota that was lowered live holds at once, and not only from the next look on.
        return min(given.rate, quota) if given else self._part(quota)

    def look(self, quotas: ClusterQuotas, used: list[ClientUse], settings: Settings) -> list[ClientKey]:
        """Work out the rate of each client, by what it uses on this broker now; the clients whose rate has changed."""
        now, (newest, age) = self._clock(), self.newest.known()
        fresh = newest.clients if newest and age <= settings.validity.total_seconds() else ()
        shares = {share.key: share for share in fresh}
        uses = by_client(used)
        self._demands.look(uses, now)
        self._begun = {key: self._begun.get(key, now) for key in uses.keys() - self._demands.silent}
        changed: list[ClientKey] = []
        given: dict[ClientKey, _Given] = {}
        # Clients that have lost their share, as all do once the shares are stale, go to their equal part in steps, too.
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
            # Back at its equal part without a share, a client needs no memory: rate() works the equal part out.
            if share is not None or before.rate != self._part(quota):
                given[key] = before
        # Replaced as a whole: clients whose quota is gone are forgotten.
        self.shared = given
        return changed

    def _part(self, quota: float) -> float:
        return quota / self.brokers

    def _wanted(self, key: ClientKey, quota: float, share: Share | None, now: float, floor: float) -> float:
        """The rate that the client would have if nobody had to be spared a long mute."""
        part = self._part(quota)
        if share is None:
            return part
        # The pipeline may not know a new quota yet. Of a tiny one that somebody invented only the part that is given of
        # it counts: divided by it, any quota would be infinite.
        shared = share.share if share.quota == quota else quota * min(1.0, share.share / share.quota)
        # Until the shares know of a client that begins, its share is only the reserve of each broker: a twentieth
        # of an equal part (ADR 11).
        begun = self._begun.get(key)
        considered = begun is not None and now - begun >= _BEGINS
        # An equal part below floor.bytes stays as it is: that floor on every broker could sum to more than the quota.
        return min(quota, max(shared, min(part, floor) if considered else part))

    def _step(self, before: _Given, wanted: float, used: ClientUse | None, max_mute: float) -> float:
        """The wanted rate, or on the way down to it as far as the client's measured rate allows."""
        # Upwards no step mutes anybody, and of a client that Kafka doesn't measure there is no rate to mute it for.
        if wanted >= before.rate or used is None:
            return wanted
        # Kafka mutes for (rate - limit) / limit x window (QuotaUtils.throttleTime): at this limit for max_mute.
        lowest = used.rate * self._window / (self._window + max_mute)
        return max(wanted, min(before.rate, lowest))


def _worth_it(before: _Given, after: float, fresh: bool, now: float) -> bool:
    change = abs(after - before.rate)
    slight = change >= _SLIGHT * before.rate and now - before.since >= _SETTLED
    return fresh != before.fresh or change >= _CHANGE * before.rate or slight


# ---- the supplier ----

_EVERY: Final = 0.5  # seconds between looks
_REST: Final = 9  # times the length of a look, the pause after it: a look may take a tenth of the time
_MOST: Final = 2000  # clients to ask the broker about


class ClusterQuota:
    """Gives each client (user and client-id) this broker's share of its quota; the next supplier has all others.

    Nobody produces to or fetches from a node that is only a controller, so nothing is followed there.
    """

    Section = ClusterQuotaSettings

    def __init__(self, context: Context[ClusterQuotaSettings]) -> None:
        topic, properties = context.settings.shares_topic, context.broker.properties()
        self._context = context
        self._given = GivenRates(quota_window(properties), time.monotonic, time.time)
        # For the brokers, which two threads count, and never during a look: the host asks all again once they have
        # changed, and a look that ends then with another rate by the number before would not announce it.
        self._counting = threading.Lock()
        self._cluster = ""
        self._registered = self._alive = 0
        self._pause = _EVERY
        self._stale, self._failure = LoggedOnce(context.log), LoggedOnce(context.log, logging.ERROR)
        self._looks: Periodic | None = None  # None where nothing is followed
        if Listeners(properties).controller_alone:
            return
        context.closing.callback(context.metrics.forget, "Shares", "")
        # All other brokers' shares would come along otherwise: with a thousand of them tens of megabytes a second.
        own_partition = partial(partition_of, str(context.node_id))
        self._quotas = ClusterQuotas(context)
        self._follower = Follower(context, topic, self.record, self._silence, partition_of=own_partition)
        self._registered_brokers = RegisteredBrokers(context, self._on_registered_brokers)
        self._looks = Periodic(f"{context.name}-steps", self._try_to_look, lambda: self._pause, context.start_thread)
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
        # Unlimited is an answer: the next supplier must not limit the client after all.
        if quota == math.inf:
            return UNLIMITED
        return Quota(self._given.rate(key, quota), Scope.CLIENT)

    def distinct_client_ids(self, principal: str) -> Collection[str] | None:
        """The client-ids with a quota; None where each client of the principal has one, and so a share of its own."""
        return self._quotas.distinct_client_ids(principal) if self._looks else frozenset()

    def cluster_changed(self, cluster: Cluster) -> None:
        """The brokers that are alive, which are known before the registered ones."""
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
        # The key is a broker's id alone, and other clusters have the same ids. Either cluster's id may be unknown yet.
        if shares and shares.cluster and self._cluster and shares.cluster != self._cluster:
            raise Refused("cluster", f"it is of the cluster {shares.cluster}")
        if shares is None:
            self._given.newest.remove()
        else:
            self._given.newest.take(shares, live, self._context.settings.validity.total_seconds(), written_ms)

    # ---- the thread that asks for the registered brokers ----

    def _on_registered_brokers(self, brokers: Mapping[str, bool]) -> None:
        self._registered = len(brokers)
        self._count_brokers()

    def _count_brokers(self) -> None:
        with self._counting:
            # The larger number gives the smaller parts, so that together they don't exceed the quota.
            before, self._given.brokers = self._given.brokers, max(1, self._registered, self._alive)
            changed = self._given.brokers != before
        if changed:
            self._context.answers_changed()

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
        validity = settings.validity.total_seconds()
        # Where no shares are or were nothing can change.
        needed = self._given.shared or self._given.newest.known()[1] <= validity
        # If the broker can't answer, this raises before a smaller share could mute anybody.
        used = self._context.broker.usage(_MOST) if needed else []
        with self._counting:
            changed = self._given.look(self._quotas, used, settings)
        # Announced only now: the host asks again at once, and must find the new rates.
        for key in changed:
            self._context.answers_changed(principal=key.principal, client_id=key.client_id)
        self._quotas.show()
        (shares, age), brokers = self._given.newest.known(), self._given.brokers
        numbers = {"Age": age, "Stale": float(age > validity), "Clients": len(self._given.shared), "Brokers": brokers}
        for attribute, number in numbers.items():
            if number < math.inf:
                self._context.metrics.gauge("Shares", "", attribute, number)
        if age <= validity:
            if self._stale.healed():
                self._context.log.warning("the shares are there again")
        elif shares:  # that there are none yet is no news
            self._stale.report("the shares are stale: each broker gives an equal part of a quota, 1/%d", brokers)
