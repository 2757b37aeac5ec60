"""A model of one disk that a policy holds back, without Kafka, by which policies are compared over hours in a second.

What flows in follows the factor with a lag, as under Kafka's quotas, and stops at once at factor 0, as by the fence.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any, Final

from quotahost.api import QuotaPolicy
from quotahost.model import Limit, LimitType, Volume
from quotahost.model.bounds import Bounds

STEP: Final = 1.0  # seconds between two reads of the factor source
_LAG: Final = 3.0  # seconds after which what flows in has 1/e of the way to the new factor left
_LARGEST: Final = 10  # the hard limit lies at so many bands; the capacity at twice as many

Demand = Callable[[float], float]
"""Seconds since the start -> bytes/s that the producers would write at factor 1."""
Drain = Callable[[float, float], float]
"""Seconds since the start, and the bytes that came in the last step -> the bytes that are deleted in it."""


def lumps(rate: float, every: float) -> Drain:
    """Deletes ``rate`` bytes/s on average, in lumps, every so many seconds."""
    return lambda now, _: rate * every if now > 0 and now % every < STEP else 0.0


def kept_for(seconds: float) -> Drain:
    """Deletes what was written so many seconds ago, in each step."""
    written: deque[float] = deque()

    def drain(_: float, came: float) -> float:
        written.append(came)
        return written.popleft() if len(written) > seconds / STEP else 0.0

    return drain


def nothing(_: float, __: float) -> float:
    """Deletes nothing."""
    return 0.0


@dataclass
class Disk:
    """One disk; between its limits lie ``band`` bytes.

    Attributes:
        demand: of the producers.
        drain: what is deleted.
        band: bytes between the limits.
        place: where on the way from soft (0) to hard (1) it begins.
        renewed: seconds after which others see how full it is; what they see is that old at most.
        moved: what else comes, in bytes/s, and no factor stops it.
        name: of its volume.
        switch: whether it has a hard limit alone.
        places: where it was after each step.
        seen: what the policy was shown of it last.
    """

    demand: Demand
    drain: Drain
    band: float
    place: float = 0.1
    renewed: float = STEP
    moved: Demand = field(default=lambda now: 0.0)
    name: str = "/d"
    switch: bool = False
    places: list[float] = field(default_factory=list)
    seen: Volume | None = None

    def __post_init__(self) -> None:
        hard = int(_LARGEST * self.band)
        self.bounds = Bounds(hard if self.switch else int(hard - self.band), hard)
        self._consumed, self._seen_at = hard - (1 - self.place) * self.band, -math.inf

    def volume(self, now: float) -> Volume:
        """What is known of it."""
        if self.seen is None or now - self._seen_at >= self.renewed:
            soft, hard = (
                Limit(LimitType.CONSUMED_BYTES, limit) for limit in (self.bounds.soft, self.bounds.hard)
            )  # as published with it
            self.seen = Volume("1", self.name, 2 * self.bounds.hard, int(self._consumed), soft, hard)
            self._seen_at = now
        return self.seen

    def pass_step(self, now: float, factor: float) -> None:
        """A step passes, in which producers write at this factor."""
        came = self.demand(now) * factor * STEP
        self._consumed += came + self.moved(now) * STEP
        self._consumed -= min(self._consumed, self.drain(now, came))
        self.places.append(1 - (self.bounds.hard - self._consumed) / self.band)


class Cluster:
    """Some disks under one policy: the smallest factor applies to all, and a PAUSE is held as the host holds it."""

    def __init__(self, *disks: Disk, release: float = 0.1, shadow: bool = False) -> None:
        """``release`` is ``pause.resume.free-share``; in shadow mode no factor has an effect."""
        self.disks, self.now = disks, 0.0
        self.factors: list[float] = []  # in force, in each step
        self._release, self._shadow = release, shadow
        self._in_force = self._let_in = 1.0
        self._paused: set[str] = set()

    def clock(self) -> float:
        """For the policy."""
        return self.now

    def run(self, policy: QuotaPolicy, hours: float) -> Cluster:
        """Let so much time pass; a policy may follow upon another one."""
        for _ in range(round(hours * 3600 / STEP)):
            self._ask(policy)
            lagging = 1.0 if self._shadow else self._in_force
            self._let_in += (lagging - self._let_in) * (1 - math.exp(-STEP / _LAG))
            if lagging == 0:
                self._let_in = 0.0
            for disk in self.disks:
                disk.pass_step(self.now, self._let_in)
            self.now += STEP
        return self

    def _ask(self, policy: QuotaPolicy) -> None:
        listener: Any = policy
        if callable(tell := getattr(listener, "factor_in_force", None)):
            tell(1.0 if self._shadow else self._in_force)
        self._in_force = min(self._held(disk, policy.quota_factor(disk.volume(self.now))) for disk in self.disks)
        self.factors.append(self._in_force)

    def _held(self, disk: Disk, factor: float) -> float:
        volume = disk.volume(self.now)
        if disk.bounds.breaches_hard(volume.consumed):
            self._paused.add(disk.name)
        elif volume.consumed <= disk.bounds.lets_go_at(self._release):
            self._paused.discard(disk.name)
        return 0.0 if disk.name in self._paused else factor


def pauses(factors: list[float]) -> int:
    """How often a PAUSE began."""
    return sum(after == 0 < before for before, after in pairwise(factors))


def deviation(factors: list[float], seconds: float = 30.0) -> float:
    """The standard deviation of the means over so many seconds, as a share of their mean."""
    length = round(seconds / STEP)
    means = [fmean(factors[at : at + length]) for at in range(0, len(factors) - length + 1, length)]
    return pstdev(means) / fmean(means)


def movement(factors: list[float]) -> float:
    """By how much the factor moved in an hour, up and down together."""
    return sum(abs(a - b) for a, b in pairwise(factors)) * 3600 / (len(factors) * STEP)
