"""What the history of volumes answers: a curve for each volume, its fill rate, and when it will be full, in words.

All times are seconds since 1970, all spans seconds.
The command line makes a ``Question``, ``history`` answers it with a ``Report``, and ``report`` and ``replay`` show it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from quotahost.base.text import printable
from quotahost.units.show import YEAR, show_at, show_time


def in_utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """Which readings of a history are wanted; empty names are all."""

    directory: str  # any path that Hadoop knows
    clusters: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None  # the time before which readings must be
    worst: int = 20  # how many volumes are drawn
    #: Over how long fill rates are measured, up to the newest reading; None for a quarter of the readings' span, a week
    #: at most.
    recent: float | None = None


class Name(NamedTuple):
    """A volume's name: names of volumes are unique within a broker, ids of brokers within a cluster."""

    cluster: str
    broker: str
    volume: str

    def title(self, several: bool) -> str:
        """``broker 1: /dev/sdb``, after the cluster's name where there are several clusters."""
        cluster = f"{printable(self.cluster)} / " if several else ""
        return f"{cluster}broker {printable(self.broker)}: {printable(self.volume)}"


class Bucket(NamedTuple):
    """A volume's readings in one part of the report's time, in bytes."""

    at: float  # of the last reading; that has ``last``, ``capacity`` and the limits
    low: int
    high: int
    last: int
    capacity: int
    soft: int | None  # the consumption at which this limit is reached
    hard: int | None


@dataclass(frozen=True, slots=True)
class Curve:
    """One volume over time."""

    name: Name
    buckets: tuple[Bucket, ...]  # at least one, oldest first
    fill_rate: float | None  # the recent one in bytes/s, by least squares; None if it isn't known

    @property
    def newest(self) -> Bucket:
        return self.buckets[-1]

    @property
    def share(self) -> float | None:
        """The consumed share of the capacity, 1.0 for all of it; None without a capacity."""
        return self.newest.last / self.newest.capacity if self.newest.capacity else None

    def show_when(self, level: int | None) -> str:
        """``in 3 d 4 h (2026-11-25 01:30)``, ``reached``, ``not at this rate``, ``not known`` or ``no limit``."""
        if level is None:
            return "no limit"
        left, rate = level - self.newest.last, self.fill_rate or 0.0
        seconds = 0.0 if left <= 0 else left / rate if rate > 0 else None  # None: never
        if seconds is not None and 0 < seconds <= YEAR:
            return f"{show_time(seconds)} ({show_at(self.newest.at + seconds)})"
        return "not known" if seconds is None and self.fill_rate is None else show_time(seconds)


class Use(NamedTuple):
    """What one client used on one broker in a part of the time, of its quota in the whole cluster; bytes/s."""

    at: float  # when the part begins
    broker: str
    rate: float
    demand: float | None  # what it would have used if nothing had held it back; None for whatever it gets
    quota: float


@dataclass(frozen=True, slots=True)
class ClientUse:
    """One client of a cluster over time: at least one use, of ``width`` seconds each, oldest first."""

    cluster: str
    user: str
    client: str
    width: float
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What a budget's topics took in a cluster, by parts of the time."""

    cluster: str
    budget: str
    width: float  # seconds of a part
    #: When each begins, and bytes: the mean of ten minutes; of a longer part the largest one.
    parts: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in the history, from the oldest to the newest reading."""

    question: Question
    since: float
    until: float
    recent: float
    known: int  # how many volumes reported, drawn or not
    #: The worst of them, worst first, with fill rates over the last ``recent``; for a replay all, by name.
    curves: tuple[Curve, ...]
    clients: tuple[ClientUse, ...] = ()  # for a replay, as far as the history has usage

    @property
    def clusters(self) -> list[str]:
        return sorted({curve.name.cluster for curve in self.curves})

    def title(self, curve: Curve) -> str:
        return curve.name.title(several=len(self.clusters) > 1)
