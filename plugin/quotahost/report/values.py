"""Frozen values of a report: what is asked of the history, and a curve for each volume that was found.

The command line makes the question, ``quotahost.pipeline.history.collect`` answers it, the other modules draw it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from quotahost.errors import QuotahostError

MOST_BUCKETS: Final = 500  # of one volume: about one for each two pixels of its figure


class NoHistory(QuotahostError):
    """There is nothing to draw; the message says what there is instead."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which readings are wanted, and of how many volumes.

    Attributes:
        directory: the folder of the history, any path that Hadoop knows.
        clusters: ids of clusters; empty for all, as the next two.
        brokers: ids of brokers.
        volumes: names of volumes.
        since: the first time wanted; None for the oldest reading.
        until: the time before which readings must be; None to include the newest.
        worst: how many volumes are drawn, the worst ones.
        recent: over how long fill rates are measured, up to the newest reading; None for a quarter of the readings'
            span, a week at most.
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
    """A volume's name: names of volumes are unique within a broker, ids of brokers within a cluster."""

    cluster: str
    broker: str
    volume: str


class Bucket(NamedTuple):
    """A volume's readings in one part of the report's time. All sizes are in bytes.

    Attributes:
        at: the time of the last reading, in seconds since 1970.
        low: the least that was consumed; ``high`` is the most, ``last`` the last reading.
        capacity: at the last reading.
        soft: the consumption at which the soft limit was reached then; None without one. ``hard`` alike.
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
        fill_rate: bytes/s by which it filled lately, by least squares; negative if it emptied, None if it isn't known.
    """

    name: Name
    buckets: tuple[Bucket, ...]
    fill_rate: float | None

    @property
    def newest(self) -> Bucket:
        """The newest bucket: its ``last`` is what is consumed now."""
        return self.buckets[-1]

    @property
    def share(self) -> float | None:
        """The consumed share of the capacity, 1.0 for all of it; None without a capacity."""
        return self.newest.last / self.newest.capacity if self.newest.capacity else None

    def seconds_to(self, level: int | None) -> float | None:
        """Seconds until that many bytes are consumed at the present fill rate; 0 if they are, None if never."""
        if level is None:
            return None
        left = level - self.newest.last
        if left <= 0:
            return 0.0
        return left / self.fill_rate if self.fill_rate is not None and self.fill_rate > 0 else None


class Use(NamedTuple):
    """What one client used on one broker in a part of the time, of its quota in the whole cluster; bytes/s.

    Attributes:
        at: the begin, in seconds since 1970.
        broker: where.
        rate: in the mean.
        demand: what it would have used if nothing had held it back; None for whatever it gets.
        quota: the largest.
    """

    at: float
    broker: str
    rate: float
    demand: float | None
    quota: float


@dataclass(frozen=True, slots=True)
class ClientUse:
    """One client of a cluster over time.

    Attributes:
        cluster: its id.
        user, client: principal and client-id.
        width: seconds that each of the uses is about.
        uses: at least one, oldest first.
    """

    cluster: str
    user: str
    client: str
    width: float
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in the history.

    Attributes:
        question: what was asked.
        since: the time of the oldest reading, in UTC; ``until`` is that of the newest.
        recent: over how long the fill rates were measured, up to ``until``.
        known: how many volumes reported in that time, drawn or not.
        curves: the worst of them, worst first.
        clients: what clients used, for a replay; None where the history has no usage.
    """

    question: Question
    since: datetime
    until: datetime
    recent: timedelta
    known: int
    curves: tuple[Curve, ...]
    clients: tuple[ClientUse, ...] | None = None

    @property
    def span(self) -> timedelta:
        """From the oldest to the newest reading."""
        return self.until - self.since

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters of the curves."""
        return tuple(sorted({curve.name.cluster for curve in self.curves}))


def in_utc(seconds: float) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
