"""A report on the history of volumes has a curve for each volume, its fill rate, and the time when it will be full.

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
    """Selects the readings of a history; an empty tuple of names selects all."""

    directory: str  # any path that Hadoop can read
    clusters: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None  # exclusive: readings are from before this time
    worst: int = 20  # the number of volumes that are drawn
    #: The period over which fill rates are measured, up to the latest reading; None means a quarter of the readings'
    #: span, and a week at most.
    recent: float | None = None


class Name(NamedTuple):
    """The full name of a volume: volume names are unique within a broker, and broker ids within a cluster."""

    cluster: str
    broker: str
    volume: str

    def title(self, several: bool) -> str:
        """``broker 1: /dev/sdb``; with ``several`` clusters, the cluster's name stands before it."""
        cluster = f"{printable(self.cluster)} / " if several else ""
        return f"{cluster}broker {printable(self.broker)}: {printable(self.volume)}"


class Bucket(NamedTuple):
    """The readings of one volume in one part of the report's time, in bytes."""

    at: float  # the time of the last reading; ``last``, ``capacity`` and the limits are from that reading
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
    fill_rate: float | None  # bytes/s, by least squares over the recent readings; None if it isn't known

    @property
    def latest(self) -> Bucket:
        return self.buckets[-1]

    @property
    def share(self) -> float | None:
        """The consumed share of the capacity, 1.0 for all of it; None if the capacity is 0."""
        return self.latest.last / self.latest.capacity if self.latest.capacity else None

    def show_when(self, level: int | None) -> str:
        """``in 3 d 4 h (2026-11-25 01:30)``, ``reached``, ``not at this rate``, ``not known`` or ``no limit``."""
        if level is None:
            return "no limit"
        left, rate = level - self.latest.last, self.fill_rate or 0.0
        seconds = 0.0 if left <= 0 else left / rate if rate > 0 else None  # None: never
        if seconds is not None and 0 < seconds <= YEAR:
            return f"{show_time(seconds)} ({show_at(self.latest.at + seconds)})"
        return "not known" if seconds is None and self.fill_rate is None else show_time(seconds)


class Use(NamedTuple):
    """The use of one client on one broker in a part of the time, and the client's cluster-wide quota, in bytes/s."""

    at: float  # the beginning of the part
    broker: str
    rate: float
    demand: float | None  # the rate that the client would have used without a limit; None means any rate
    quota: float


@dataclass(frozen=True, slots=True)
class ClientUse:
    """One client of a cluster over time: one or more uses of ``width`` seconds each, the oldest first."""

    cluster: str
    user: str
    client: str
    width: float
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The bytes that a budget's topics took in a cluster, by parts of the time."""

    cluster: str
    budget: str
    width: float  # the length of a part in seconds
    #: The beginning of each part, and bytes: the mean of ten minutes. A longer part has the largest of its means.
    parts: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of reading the history, from the oldest to the latest reading."""

    question: Question
    since: float
    until: float
    recent: float
    reported: int  # the number of volumes that reported, drawn or not
    #: A report has the worst ones, worst first, with fill rates over ``recent`` seconds; a replay has all, by name.
    curves: tuple[Curve, ...]
    clients: tuple[ClientUse, ...] = ()  # for a replay only, if the history has usage

    @property
    def clusters(self) -> list[str]:
        return sorted({curve.name.cluster for curve in self.curves})

    def title(self, curve: Curve) -> str:
        return curve.name.title(several=len(self.clusters) > 1)
