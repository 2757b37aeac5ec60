"""Plays a policy for hours against one disk or two, in the model of ``quotahost simulate disk``, within seconds.

Producers are many small ones: what they want at factor 1 flows in steadily, times the factor, as the taps follow it. A
scene has an unused disk of ``BAND`` bytes between its limits, if it says nothing else, and Kafka's quotas 2 windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any, Final

from harness.loop.cluster import Cluster, ClusterScene
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan
from quotahost.model import Limit, LimitType

SECOND: Final = 1000  # ms
HOUR: Final = 3600 * SECOND
BAND: Final = 10 * 10**9  # bytes
_LARGEST: Final = 10  # the hard limit lies at so many bands; the capacity at twice as many
_QUOTA: Final = 1e9  # bytes/s: what flows in is the share of the demand that a limit is of it
Changes = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Course:
    """What happened, second by second.

    Attributes:
        factors: those that the first broker's host has decided on.
        places: where each disk was on the way from soft (0) to hard (1).
    """

    factors: list[float]
    places: list[list[float]]


def disk(drain: float = 0.0, every: float = 1.0, place: float = 0.1, band: int = BAND, **more: Any) -> DiskPlan:
    """A disk that begins at this place, and from which ``drain`` bytes/s are deleted, in lumps ``every`` so many s."""
    hard = _LARGEST * band
    soft, limit = (Limit(LimitType.CONSUMED_BYTES, level) for level in (hard - band, hard))
    used = int(hard - (1 - place) * band)
    return DiskPlan(2 * hard, used, soft, limit, drain, round(every * SECOND), **more)


def producers(demand: float, home: int = 0, changes: Changes = ()) -> ClientPlan:
    """Those that write to the disk of that index, and from when on (ms) they want how much (bytes/s) instead."""
    return ClientPlan(f"p{home}", "flowing", _QUOTA, 1, demand, home=home, changes=changes)


def play(
    policy: str, hours: float, disks: Sequence[DiskPlan], clients: Sequence[ClientPlan] = (), **scene: Any
) -> Course:
    """Let so much time pass; ``properties`` of the scene come in addition."""
    own = {"policy": policy, "factor.source": "snapshots" if len(disks) > 1 else "local", "factor.interval": "1s"}
    own |= {"volumes.period": "1s", "floor.bytes": "1"} | scene.pop("properties", {})
    ms = round(hours * HOUR)
    world = Cluster(ClusterScene(0, ms, tuple(sorted(own.items())), tuple(clients), tuple(disks), windows=2, **scene))
    factors, places = list[float](), [list[float]() for _ in disks]

    def look() -> None:
        factors.append(world.brokers[0].factor)
        for course, one in zip(places, world.disks, strict=True):
            course.append(1 - (one.bounds.hard - one.used()) / max(1, one.bounds.hard - one.bounds.soft))
        world.events.after(SECOND, look)

    world.events.at(SECOND, look)
    world.run()
    return Course(factors, places)


def deviation(factors: list[float]) -> float:
    """The standard deviation of the means over 30 s, as a share of their mean."""
    means = [fmean(factors[at : at + 30]) for at in range(0, len(factors) - 29, 30)]
    return pstdev(means) / fmean(means)


def movement(factors: list[float]) -> float:
    """By how much the factor moved in an hour, up and down together."""
    return sum(abs(a - b) for a, b in pairwise(factors)) * 3600 / len(factors)
