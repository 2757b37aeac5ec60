"""Plays a policy for hours against one disk or two, second by second, with the host of ``quotahost replay``.

There are many small producers: their demand at factor 1 flows in steadily, times the share of their limits that the
taps leave. By default a scene has an unused disk with ``BAND`` bytes between its limits, and Kafka's quotas have 2
windows.
"""

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean, pstdev
from typing import Final

from harness.plugin import prefixed
from quotahost.cli.lab.host import Host, quiet
from quotahost.model import Limit, LimitType, Volume
from quotahost.settings.broker import Settings

HOUR: Final = 3600  # seconds
BAND: Final = 10 * 10**9  # bytes
_LARGEST: Final = 10  # the hard limit in bands; the capacity is twice as large
_WINDOWS: Final = (2, 1000)
Changes = tuple[tuple[int, float], ...]  # the second from which another rate holds, and the rate in bytes/s


@dataclass(frozen=True)
class Course:
    """The values of a run, second by second."""

    factors: list[float]  # the host's decisions
    places: list[list[float]]  # the place of each disk between soft (0) and hard (1)


@dataclass(frozen=True)
class Disk:
    """A disk with its producers. Times are whole seconds."""

    demand: float = 0.0  # bytes/s that producers write at factor 1
    changes: Changes = ()  # their later demands
    drain: float = 0.0  # mean bytes/s that are deleted, in lumps ``every`` so many seconds
    every: int = 1
    #: The first place between the soft limit (0) and the hard limit (1), which are ``band`` bytes apart.
    place: float = 0.1
    band: int = BAND
    others: Changes = ()  # the rates of writers without a quota
    cleanups: Changes = ()  # the time at which an operator frees bytes, and their number
    kept: int = 0  # for how long producers' data is kept; 0 for a steady drain instead

    @property
    def hard(self) -> int:
        """The hard limit, in bytes."""
        return _LARGEST * self.band

    def course(self, broker: str) -> Generator[Volume, float]:
        """Yields the volume second by second; the caller sends the share of the producers' demand that is let in."""
        soft, hard = (Limit(LimitType.CONSUMED_BYTES, level) for level in (self.hard - self.band, self.hard))
        used, demand, others = self.hard - (1 - self.place) * self.band, self.demand, 0.0
        demands, rates, kept = dict(self.changes), dict(self.others), deque([0.0] * self.kept)
        for second in count():
            share = yield Volume(broker, "/data", 2 * self.hard, int(used), soft, hard)
            demand, others = demands.get(second, demand), rates.get(second, others)
            gone = sum(size for at, size in self.cleanups if at == second)
            if self.kept:
                kept.append(demand * share)
                gone += kept.popleft()
            elif (second + 1) % self.every == 0:
                gone += self.drain * self.every
            used = max(0.0, used + demand * share + others - gone)


def play(
    policy: str, hours: float, *disks: Disk, properties: Mapping[str, str] | None = None, restarts: Sequence[int] = ()
) -> Course:
    """Lets so much time pass; the host restarts in the seconds of ``restarts``."""
    own = {"policy": policy, "factor.source": "local", "volumes.period": "1s"} | dict(properties or {})
    settings = Settings.from_properties(prefixed(own))
    period = round(settings.volumes_period.total_seconds())
    courses = [plan.course(str(broker)) for broker, plan in enumerate(disks, 1)]
    volumes = [next(course) for course in courses]
    factors, places = list[float](), [list[float]() for _ in disks]
    with quiet():
        for second in range(round(hours * HOUR)):
            if second in (0, *restarts):
                host = Host(settings, _WINDOWS, lambda: 1000.0 + len(factors))
            if second % period == 0:
                host.know(volumes)
            host.decide()
            factors.append(host.factor)
            shares = [host.share_of((volume.broker, volume.name)) for volume in volumes]
            volumes = [course.send(share) for course, share in zip(courses, shares, strict=True)]
            for plan, volume, of_disk in zip(disks, volumes, places, strict=True):
                of_disk.append(1 - (plan.hard - volume.consumed) / plan.band)
    return Course(factors, places)


def deviation(factors: list[float]) -> float:
    """Returns the standard deviation of the means over 30 s, as a share of their mean."""
    means = [fmean(factors[at : at + 30]) for at in range(0, len(factors) - 29, 30)]
    return pstdev(means) / fmean(means)
