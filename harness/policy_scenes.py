"""Plays a policy for hours against one disk or two, second by second, by the host of ``quotahost replay``.

Producers are many small ones: what they want at factor 1 flows in steadily, times the share of their limits that the
taps leave. A scene has an unused disk of ``BAND`` bytes between its limits, if it says nothing else, and Kafka's quotas
2 windows.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Final

from quotahost.cli.lab.host import Host, quiet, settings_of
from quotahost.model import Limit, LimitType, Volume

HOUR: Final = 3600  # seconds
BAND: Final = 10 * 10**9  # bytes
_LARGEST: Final = 10  # the hard limit lies at so many bands; the capacity at twice as many
_WINDOWS: Final = (2, 1000)
Changes = tuple[tuple[int, float], ...]  # from which second on another rate holds, in bytes/s


@dataclass(frozen=True)
class Course:
    """What happened, second by second.

    Attributes:
        factors: those that the host has decided on.
        places: where each disk was on the way from soft (0) to hard (1).
    """

    factors: list[float]
    places: list[list[float]]


@dataclass(frozen=True)
class Disk:
    """A disk with its producers. Times are whole seconds.

    Attributes:
        demand: bytes/s that producers write at factor 1.
        changes: their demand later on.
        drain: bytes/s that are deleted in the mean, in lumps ``every`` so many seconds.
        place: where it begins on the way from the soft limit (0) to the hard one (1), which are ``band`` bytes apart.
        others: the rate at which writers without a quota fill it.
        cleanups: when an operator frees how many bytes.
        kept: for how long what producers write is kept; 0 for a steady drain instead.
    """

    demand: float = 0.0
    changes: Changes = ()
    drain: float = 0.0
    every: int = 1
    place: float = 0.1
    band: int = BAND
    others: Changes = ()
    cleanups: Changes = ()
    kept: int = 0


class _Store:
    """The bytes of a disk on the way."""

    def __init__(self, plan: Disk, broker: str) -> None:
        self._plan, self._hard = plan, _LARGEST * plan.band
        soft, hard = (Limit(LimitType.CONSUMED_BYTES, level) for level in (self._hard - plan.band, self._hard))
        self._volume = Volume(broker, "/data", 2 * self._hard, 0, soft, hard)
        self._used = self._hard - (1 - plan.place) * plan.band
        self._demand, self._demands = plan.demand, dict(plan.changes)
        self._others, self._rates = 0.0, dict(plan.others)
        self._written = deque([0.0] * plan.kept)

    @property
    def place(self) -> float:
        return 1 - (self._hard - self._used) / self._plan.band

    def seen(self) -> Volume:
        return replace(self._volume, consumed=int(self._used))

    def go_on(self, second: int, host: Host) -> None:
        """What comes and goes in this second."""
        plan = self._plan
        self._demand = self._demands.get(second, self._demand)
        self._others = self._rates.get(second, self._others)
        written = self._demand * host.share_of((self._volume.broker, self._volume.name))
        gone = sum(size for at, size in plan.cleanups if at == second)
        if plan.kept:
            self._written.append(written)
            gone += self._written.popleft()
        elif (second + 1) % plan.every == 0:
            gone += plan.drain * plan.every
        self._used = max(0.0, self._used + written + self._others - gone)


def play(
    policy: str, hours: float, *disks: Disk, properties: Mapping[str, str] | None = None, restarts: Sequence[int] = ()
) -> Course:
    """Let so much time pass; the host starts anew in the seconds of ``restarts``."""
    own = {"policy": policy, "factor.source": "local", "volumes.period": "1s"} | dict(properties or {})
    settings = settings_of(tuple(sorted(own.items())))
    period = round(settings.volumes_period.total_seconds())
    stores = [_Store(plan, str(broker)) for broker, plan in enumerate(disks, 1)]
    factors, places = list[float](), [list[float]() for _ in disks]
    with quiet():
        for second in range(round(hours * HOUR)):
            if second in (0, *restarts):
                host = Host(settings, _WINDOWS, lambda: 1000.0 + len(factors))
            if second % period == 0:
                host.know(store.seen() for store in stores)
            host.decide()
            factors.append(host.factor)
            for store, course in zip(stores, places, strict=True):
                store.go_on(second, host)
                course.append(store.place)
    return Course(factors, places)


def deviation(factors: list[float]) -> float:
    """The standard deviation of the means over 30 s, as a share of their mean."""
    means = [fmean(factors[at : at + 30]) for at in range(0, len(factors) - 29, 30)]
    return pstdev(means) / fmean(means)


def movement(factors: list[float]) -> float:
    """By how much the factor moved in an hour, up and down together."""
    return sum(abs(a - b) for a, b in pairwise(factors)) * 3600 / len(factors)
