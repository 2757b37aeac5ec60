"""The newest shares of this broker, and what each client is given of them, in steps that mute nobody for long."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from quotahost.model import ClientUsage
from quotahost.plugins.cluster_quota.demand import Demands, key_of
from quotahost.plugins.cluster_quota.rates import ClusterRates
from quotahost.plugins.kafka.newest import Newest
from quotahost.records.clients import ClientKey
from quotahost.records.shares import Share, Shares

_NEWS: Final = 0.1  # of what a client is given: a change of so much is handed on at once
_SLIGHT: Final = 0.01  # so much after _SETTLED
_SETTLED: Final = 10.0  # seconds
_BEGINS: Final = 3.0  # seconds until the shares take note of a client that begins here


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no share may break.

    Attributes:
        validity: seconds for which shares hold.
        floor: bytes/s below which no client is taken unless its equal part is smaller.
        step: the part of a client's rate below which its limit must not go at once: window / (window + max.mute), as
            Kafka delays a client by (rate - limit) / limit x window (ClientQuotaManager.throttleTime).
    """

    validity: float
    floor: float
    step: float


@dataclass(slots=True)
class _Given:
    """What a client is given in bytes/s, since when (monotonic seconds), and whether by a fresh share."""

    rate: float
    since: float
    fresh: bool


class ShareBook:
    """Keeps the newest record (``quotahost.plugins.kafka.newest``) and what each client is given of it.

    Without a fresh share a client has an equal part: its quota over the number of registered brokers. It has that at
    least, too, while it is silent here and for a moment after it began: what it has of a quota that is used elsewhere
    is a small reserve, and for its first burst Kafka would mute it for minutes.
    """

    def __init__(self, window: float, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``window`` of Kafka's quotas; ``clock`` monotonic, ``wall`` since 1970; all in seconds."""
        self._clock = clock
        self._demands = Demands(window)
        self._newest: Newest[Shares] = Newest(clock, wall)
        self._shares: Mapping[ClientKey, Share] = {}
        self._given: dict[ClientKey, _Given] = {}
        self._begun: dict[ClientKey, float] = {}
        self.brokers = 1

    def take(self, shares: Shares, live: bool, validity: float) -> bool:
        """A record was read; whether it is the newest now. ``live`` as for ``follower.Reader``."""
        self._newest.take(shares, live, validity)
        kept = self._newest.known()[0]
        if kept is not shares:
            return False
        self._shares = {share.key: share for share in shares.clients}
        return True

    def remove(self) -> None:
        """A tombstone was read: no share holds."""
        self._newest.remove()
        self._shares = {}

    def age(self) -> float | None:
        """The newest record's age in seconds; None without one."""
        age = self._newest.known()[1]
        return None if math.isinf(age) else age

    def fresh(self, validity: float) -> bool:
        """Whether there are shares that hold."""
        age = self.age()
        return age is not None and age <= validity

    @property
    def shared(self) -> int:
        """How many clients have anything but an equal part, or a share that is just that."""
        return len(self._given)

    def rate(self, key: ClientKey, quota: float) -> float:
        """Bytes/s that a client with this cluster-wide quota is given here now."""
        given = self._given.get(key)
        return min(given.rate, quota) if given else self._part(quota)

    def look(self, rates: ClusterRates, used: list[ClientUsage], bounds: Bounds) -> list[ClientKey]:
        """Work out what each client is given now; those for whom it is another rate.

        Args:
            rates: the cluster-wide quotas.
            used: what the clients use here now.
            bounds: what holds in any case.
        """
        now, fresh = self._clock(), self.fresh(bounds.validity)
        uses = {key_of(each): each for each in used}
        self._note_who_began(uses, now)
        changed: list[ClientKey] = []
        given: dict[ClientKey, _Given] = {}
        for key in self._given.keys() | (self._shares.keys() if fresh else set()):
            quota = rates.limited(key)
            if quota is None:
                continue
            share = self._shares.get(key) if fresh else None
            before = self._given.get(key) or _Given(self._part(quota), now - _SETTLED, False)
            wanted = self._wanted(key, quota, share, now, bounds.floor)
            after = self._step(before, wanted, uses.get(key), bounds.step)
            if after != before.rate and _counts(before, after, share is not None, now):
                changed.append(key)
                before = _Given(after, now, share is not None)
            if share is not None or before.rate != self._part(quota):
                given[key] = before
        self._given = given
        return changed

    def _note_who_began(self, uses: Mapping[ClientKey, ClientUsage], now: float) -> None:
        self._demands.look(uses.values(), now)
        asking = uses.keys() - self._demands.silent
        self._begun = {key: self._begun.get(key, now) for key in asking}

    def _part(self, quota: float) -> float:
        return quota / max(1, self.brokers)

    def _wanted(self, key: ClientKey, quota: float, share: Share | None, now: float, floor: float) -> float:
        """Where the client's rate is to go."""
        part = self._part(quota)
        if share is None:
            return part
        told = share.share * (quota / share.quota)  # the pipeline may not have heard of a new quota yet
        begun = self._begun.get(key)
        counted = begun is not None and now - begun >= _BEGINS
        return min(quota, max(told, min(part, floor) if counted else part))

    @staticmethod
    def _step(before: _Given, wanted: float, used: ClientUsage | None, step: float) -> float:
        """There at once, or downwards only as far as the client's measured rate allows."""
        if wanted >= before.rate or used is None:
            return wanted
        return max(wanted, min(before.rate, used.rate * step))


def _counts(before: _Given, after: float, fresh: bool, now: float) -> bool:
    """Whether the difference is worth that Kafka reads its limits again."""
    change = abs(after - before.rate)
    slight = change >= _SLIGHT * before.rate and now - before.since >= _SETTLED
    return fresh != before.fresh or change >= _NEWS * before.rate or slight
