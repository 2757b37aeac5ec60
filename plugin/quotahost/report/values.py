"""Frozen values of a report: what was asked, and a curve for each volume."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from quotahost.errors import QuotahostError

MOST_BUCKETS: Final = 500  # of one volume: about one for each two pixels


class NoHistory(QuotahostError):
    """There is nothing to draw; the message says what there is instead."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which readings are wanted, and how many volumes.

    Attributes:
        directory: the history's, any path that Hadoop knows.
        clusters: their ids; empty is all, here and below.
        brokers: their ids.
        volumes: their names.
        since: the first time wanted; None is the oldest.
        until: the time before which they must be; None is the newest, included.
        worst: so many volumes are drawn.
        recent: how much of the newest gives the fill rate; None is a quarter of the readings' span, a week at most.
    """

    directory: str
    clusters: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    worst: int = 20
    recent: timedelta | None = None


class Name(NamedTuple):
    """Which volume."""

    cluster: str
    broker: str
    volume: str


class Bucket(NamedTuple):
    """A volume's readings of one part of the time.

    Attributes:
        at: of the last of them, in seconds since 1970.
        low: the least consumed, bytes; ``high`` the most, ``last`` the last.
        capacity: at the last, bytes.
        soft: the consumption at which the limit was reached then, bytes; None is none. ``hard`` alike.
    """

    at: float
    low: int
    high: int
    last: int
    capacity: int
    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class Curve:
    """One volume over time.

    Attributes:
        name: which volume.
        buckets: at least one, oldest first.
        fill_rate: bytes/s by which it filled of late, least squares; negative if it emptied, None if nothing is known.
    """

    name: Name
    buckets: tuple[Bucket, ...]
    fill_rate: float | None

    @property
    def newest(self) -> Bucket:
        """The last one: its ``last`` is what is consumed now."""
        return self.buckets[-1]

    @property
    def share(self) -> float | None:
        """Consumed of the capacity, 1.0 is all; None without a capacity."""
        return self.newest.last / self.newest.capacity if self.newest.capacity else None

    def seconds_to(self, level: int | None) -> float | None:
        """Until that many bytes are consumed at the present rate; 0 if they are, None if never."""
        if level is None:
            return None
        left = level - self.newest.last
        if left <= 0:
            return 0.0
        return left / self.fill_rate if self.fill_rate is not None and self.fill_rate > 0 else None


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

    Attributes:
        question: what was asked.
        since: the oldest reading, in UTC; ``until`` the newest.
        recent: the part that the fill rates are of.
        known: volumes that reported in that part, drawn or not.
        curves: the worst of them, worst first.
    """

    question: Question
    since: datetime
    until: datetime
    recent: timedelta
    known: int
    curves: tuple[Curve, ...]

    @property
    def clusters(self) -> tuple[str, ...]:
        """Those drawn."""
        return tuple(sorted({curve.name.cluster for curve in self.curves}))


def in_utc(seconds: float) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
