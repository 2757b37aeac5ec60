"""Frozen values of a replay: for each broker or cluster and for each volume, what was and what would have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from quotahost.model import State
from quotahost.report.values import Name

STATES: Final = (State.OPEN, State.THROTTLE, State.PAUSE)


@dataclass(frozen=True, slots=True)
class Held:
    """For how long a factor was in which state.

    Attributes:
        open_s: seconds at factor 1; ``throttle_s`` are between, ``pause_s`` at 0.
        lowest: the smallest factor.
        first_pause: when the first PAUSE began, in seconds since 1970; None without one.
        pauses: how many there were.
    """

    open_s: float
    throttle_s: float
    pause_s: float
    lowest: float
    first_pause: float | None
    pauses: int


class FactorPoint(NamedTuple):
    """A factor from a time on, in seconds since 1970; then, and with the new settings."""

    at: float
    then: float
    new: float


class UsePoint(NamedTuple):
    """Bytes consumed at a time, in seconds since 1970: as recorded, and as it would have been; limits are the new."""

    at: float
    then: int
    new: int
    capacity: int
    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class Where:
    """One factor: that of a cluster, or of a broker which looks at its own disks only (``broker`` "" for all).

    Attributes:
        cluster, broker: whose factor it is.
        then: as it was by the recorded consumption.
        new: as it would have been.
        unknown_s: seconds in which no volume was known.
        factors: each change.
    """

    cluster: str
    broker: str
    then: Held
    new: Held
    unknown_s: float
    factors: tuple[FactorPoint, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """One volume.

    Attributes:
        name: which.
        then: by its own factor; whether it held others back depends on the other volumes.
        new: as it would have been.
        peak_then: the most bytes consumed, as recorded; ``peak_new`` as it would have been.
        full_at: when it would have been full, in seconds since 1970; None if not, or if it was full anyway.
        estimated: whether bytes are in it of which the history knows nothing, as they were held back then.
        points: each reading.
    """

    name: Name
    then: Held
    new: Held
    peak_then: int
    peak_new: int
    full_at: float | None
    estimated: bool
    points: tuple[UsePoint, ...]

    @property
    def capacity(self) -> int:
        """Bytes, at the last reading."""
        return self.points[-1].capacity


class HeldBack(NamedTuple):
    """For how many seconds a client was slowed, and paused."""

    slowed_s: float
    paused_s: float


@dataclass(frozen=True, slots=True)
class ClientCourse:
    """One producer, as far as brokers published its use.

    Attributes:
        cluster, user, client: which.
        brokers: where it wrote.
        rate: bytes/s of all brokers together, in the mean of the time in which it wrote.
        then: for how long the factor held it back, as recorded.
        new: with the settings in question.
    """

    cluster: str
    user: str
    client: str
    brokers: tuple[str, ...]
    rate: float
    then: HeldBack
    new: HeldBack


@dataclass(frozen=True, slots=True)
class Replay:
    """What the settings would have done.

    Attributes:
        since, until: the first and the last reading, in seconds since 1970.
        step: seconds between two looks at the volumes.
        where: each factor.
        volumes: those that would have been slowed or paused first, and then by name.
        clients: those that were or would have been held back, the longest paused first.
        notes: sentences about what the answer leaves out.
    """

    since: float
    until: float
    step: float
    where: tuple[Where, ...]
    volumes: tuple[Course, ...]
    clients: tuple[ClientCourse, ...]
    notes: tuple[str, ...]
