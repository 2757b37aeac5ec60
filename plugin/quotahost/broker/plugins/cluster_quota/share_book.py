"""This broker's newest shares, and the rate that each client is given of them, in steps that mute nobody for long.

The pipeline divides each cluster-wide quota among the brokers and publishes every broker's shares. The supplier
``cluster-quota`` hands each record to the book, has it work out the rates twice a second, and announces those that
changed; the host then asks the supplier again, which answers from the book.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from quotahost.broker.plugins.cluster_quota.demand import Demands, key_of
from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.kafka.latest_record import LatestRecord
from quotahost.model import ClientUsage
from quotahost.records.shares import Share, Shares
from quotahost.records.usage import ClientKey

# Each new rate makes Kafka go through all its sensors, so small changes are not worth handing on.
_NEWS: Final = 0.1  # of a client's rate: a change of so much is handed on at once
_SLIGHT: Final = 0.01  # of a client's rate: a change of so much is handed on once the rate is _SETTLED
_SETTLED: Final = 10.0  # seconds
_BEGINS: Final = 3.0  # seconds until the shares consider a client that begins to use this broker


@dataclass(frozen=True, slots=True)
class Conditions:
    """The properties that restrict every client's rate, whatever its share.

    Attributes:
        validity: seconds for which shares are fresh.
        floor: bytes/s below which no client is taken unless its equal part is smaller (``floor.bytes``).
        max_mute: seconds for which a step may mute a client at most.
    """

    validity: float
    floor: float
    max_mute: float


@dataclass(slots=True)
class _Given:
    """A client's rate in bytes/s, since when it has it (monotonic seconds), and whether by a fresh share."""

    rate: float
    since: float
    fresh: bool


class ShareBook:
    """Keeps the newest record (``quotahost.kafka.latest_record``) and the rate that each client is given of it.

    Without a fresh share a client has an equal part: its quota over the number of registered brokers. It also has at
    least that while it is silent on this broker and for a moment after it began: its share of a quota that is used
    elsewhere is a small reserve, and Kafka would mute it for minutes for its first burst.

    Attributes:
        brokers: the number of registered brokers; the supplier sets it.
    """

    def __init__(self, window: float, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``window`` is ``quota_window``; ``clock`` monotonic, ``wall`` since 1970; all in seconds."""
        self._clock, self._window = clock, window
        self._demands = Demands(window)
        self._newest: LatestRecord[Shares] = LatestRecord(clock, wall)
        self._shares: Mapping[ClientKey, Share] = {}
        self._given: dict[ClientKey, _Given] = {}
        self._begun: dict[ClientKey, float] = {}
        self.brokers = 1

    def take(self, shares: Shares, live: bool, validity: float, written_ms: int | None = None) -> bool:
        """A record was read; whether it is the newest now. The last and ``live`` as for ``follower.Reader``."""
        self._newest.take(shares, live, validity, written_ms)
        # `is`: after a late record, or one that is read again, the kept record is another object.
        if self._newest.known()[0] is not shares:
            return False
        self._shares = {share.key: share for share in shares.clients}
        return True

    def remove(self) -> None:
        """A tombstone was read: there are no shares."""
        self._newest.remove()
        self._shares = {}

    def age(self) -> float:
        """The newest record's age in seconds; infinite without one."""
        return self._newest.known()[1]

    def fresh(self, validity: float) -> bool:
        """Whether there are shares that are no older than ``validity`` (seconds)."""
        return self.age() <= validity

    @property
    def shared(self) -> int:
        """How many clients have a share, or are still on their way from one to their equal part."""
        return len(self._given)

    def rate(self, key: ClientKey, quota: float) -> float:
        """Bytes/s that a client with this cluster-wide quota is given on this broker now."""
        given = self._given.get(key)
        # A quota that was lowered live holds at once, and not only from the next look on.
        return min(given.rate, quota) if given else self._part(quota)

    def look(self, quotas: ClusterQuotas, used: list[ClientUsage], conditions: Conditions) -> list[ClientKey]:
        """Work out the rate of each client; the clients whose rate has changed.

        Args:
            quotas: the cluster-wide quotas.
            used: what the clients use on this broker now.
            conditions: restrict the rates.
        """
        now, fresh = self._clock(), self.fresh(conditions.validity)
        uses = {key_of(each): each for each in used}
        self._note_beginnings(uses, now)
        changed: list[ClientKey] = []
        given: dict[ClientKey, _Given] = {}
        # Clients that have lost their share, as all do once the shares are stale, go to their equal part in steps, too.
        for key in self._given.keys() | (self._shares.keys() if fresh else set()):
            quota = quotas.limited(key)
            if quota is None:
                continue
            share = self._shares.get(key) if fresh else None
            before = self._given.get(key) or _Given(self._part(quota), now - _SETTLED, False)
            wanted = self._wanted(key, quota, share, now, conditions.floor)
            after = self._step(before, wanted, uses.get(key), conditions.max_mute)
            if after != before.rate and _worth_it(before, after, share is not None, now):
                changed.append(key)
                before = _Given(after, now, share is not None)
            # Back at its equal part without a share, a client needs no memory: rate() works the equal part out.
            if share is not None or before.rate != self._part(quota):
                given[key] = before
        # Replaced as a whole: clients whose quota is gone are forgotten.
        self._given = given
        return changed

    def _note_beginnings(self, uses: Mapping[ClientKey, ClientUsage], now: float) -> None:
        self._demands.look(uses.values(), now)
        asking = uses.keys() - self._demands.silent
        self._begun = {key: self._begun.get(key, now) for key in asking}

    def _part(self, quota: float) -> float:
        return quota / max(1, self.brokers)

    def _wanted(self, key: ClientKey, quota: float, share: Share | None, now: float, floor: float) -> float:
        """The rate that the client would have if nobody had to be spared a long mute."""
        part = self._part(quota)
        if share is None:
            return part
        # The pipeline may not know a new quota yet. Of a tiny one that somebody invented only the part that is given of
        # it counts: divided by it, any quota would be infinite.
        own = share.share if share.quota == quota else quota * min(1.0, share.share / share.quota)
        # Until the shares know of a client that begins, its share is only the reserve of each broker: a twentieth
        # of an equal part (ADR 11).
        begun = self._begun.get(key)
        considered = begun is not None and now - begun >= _BEGINS
        # An equal part below floor.bytes stays as it is: that floor on every broker could sum to more than the quota.
        return min(quota, max(own, min(part, floor) if considered else part))

    def _step(self, before: _Given, wanted: float, used: ClientUsage | None, max_mute: float) -> float:
        """The wanted rate, or on the way down to it as far as the client's measured rate allows."""
        # Upwards no step mutes anybody, and of a client that Kafka doesn't measure there is no rate to mute it for.
        if wanted >= before.rate or used is None:
            return wanted
        # Kafka mutes for (rate - limit) / limit x window (QuotaUtils.throttleTime): at this limit for max_mute.
        lowest = used.rate * self._window / (self._window + max_mute)
        return max(wanted, min(before.rate, lowest))


def _worth_it(before: _Given, after: float, fresh: bool, now: float) -> bool:
    """Whether the difference is worth Kafka's reading all limits again."""
    change = abs(after - before.rate)
    slight = change >= _SLIGHT * before.rate and now - before.since >= _SETTLED
    return fresh != before.fresh or change >= _NEWS * before.rate or slight
