"""Frozen values about disks: a limit, and a volume with the limits that hold for it.

A leaf module; everyone else imports these from :mod:`quotahost.model.quotas`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

# TODO(merge) Frozen value types that every other module speaks in: clients, quotas, scopes, factors,
#   volumes, snapshots.


class LimitType(StrEnum):
    """The kinds of a limit, by the names of proposal 035's JSON schema (its "Limit Types")."""

    CONSUMED_BYTES = "ConsumedBytes"
    MIN_FREE_BYTES = "MinFreeBytes"
    MIN_FREE_PERCENTAGE = "MinFreePercentage"


@dataclass(frozen=True, slots=True)
class Limit:
    """How full a volume may become (proposal 035, Limit Definition).

    ``level`` is in whole bytes; for MIN_FREE_PERCENTAGE it is percent of the capacity, 0 to 100, which may
    be fractional: a float counts as the decimal that it prints as, so 0.1 is exactly a tenth of a percent.

    Raises:
        ValueError: type is no LimitType, or level is negative, not finite, not a number, above 100 percent
            or not whole bytes.
    """

    type: LimitType
    level: int | float

    def __post_init__(self) -> None:
        if not isinstance(self.type, LimitType):
            raise ValueError(f"limit type must be a LimitType, not {self.type!r}")
        level = self.level
        if isinstance(level, bool) or not isinstance(level, int | float):
            raise ValueError(f"the level of a {self.type} limit must be a number, not {level!r}")
        if not 0 <= level < math.inf:
            raise ValueError(f"the level of a {self.type} limit must be finite and at least 0, not {level!r}")
        if self.type is LimitType.MIN_FREE_PERCENTAGE:
            if level > 100:
                raise ValueError(f"the level of a {self.type} limit must be at most 100 %, not {level!r}")
        elif level != int(level):
            raise ValueError(f"the level of a {self.type} limit must be whole bytes, not {level!r}")
        else:
            object.__setattr__(self, "level", int(level))

    def __str__(self) -> str:
        """As an operator reads it: ``MinFreePercentage 5 %``, ``ConsumedBytes 1,000,000 bytes``."""
        if self.type is LimitType.MIN_FREE_PERCENTAGE:
            return f"{self.type} {self.level:g} %"
        return f"{self.type} {self.level:,} bytes"

    def consumed_at(self, capacity: int) -> int:
        """The consumption, in bytes, at which a volume of this capacity (bytes) reaches the limit.

        Limits of different types can be compared only so. Never below 0: a volume that is smaller than the
        free space demanded is at its limit when it is empty. Exact, a fraction of a byte of free space counts as one.
        """
        if self.type is LimitType.CONSUMED_BYTES:
            return int(self.level)
        if self.type is LimitType.MIN_FREE_BYTES:
            return max(0, capacity - int(self.level))
        return max(0, capacity - _part(self.level, capacity))


@lru_cache(
    maxsize=65_536
)  # a fraction's arithmetic for each of 20,000 volumes would take a quarter of a second
def _part(percent: float, capacity: int) -> int:
    return math.ceil(capacity * exact(percent) / 100)


def contradict(soft: Limit | None, hard: Limit | None) -> str | None:
    """Why these two can't both hold on a volume of any size; None if they can.

    Limits of different types contradict each other on some volumes only, which their policy finds out.
    """
    if soft is None or hard is None or soft.type is not hard.type:
        return None
    consumed = hard.type is LimitType.CONSUMED_BYTES
    if hard.level >= soft.level if consumed else hard.level <= soft.level:
        return None
    return f"the hard limit {hard} is reached before the soft limit {soft}"


def exact(level: float) -> Fraction:
    """The decimal number that a float prints as, without the error of its binary form."""
    return Fraction(repr(level))


@dataclass(frozen=True, slots=True)
class Volume:
    """One file store of one broker; capacity and consumed in bytes.

    ``soft`` and ``hard`` are the limits published with it: its own, else those of the broker that it belongs
    to (proposal 035, snapshot note 2); None if that broker has none.
    ``consumed`` may be above ``capacity``, as file systems keep blocks for root.

    Raises:
        ValueError: broker or name is not a string, or a size is not a whole number of at least 0.
    """

    broker: str
    name: str
    capacity: int
    consumed: int
    soft: Limit | None = None
    hard: Limit | None = None

    def __post_init__(self) -> None:
        for what, text in (("broker", self.broker), ("name", self.name)):
            if not isinstance(text, str):
                raise ValueError(f"the {what} of a volume must be a string, not {text!r}")
        for what, size in (("capacity", self.capacity), ("consumed", self.consumed)):
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise ValueError(f"{what} of a volume must be a whole number of bytes from 0, not {size!r}")
        for what, limit in (("soft", self.soft), ("hard", self.hard)):
            if limit is not None and not isinstance(limit, Limit):
                raise ValueError(f"{what} of a volume must be a Limit or None, not {limit!r}")

    @property
    def free(self) -> int:
        """Bytes left, 0 if it is over-full."""
        return max(0, self.capacity - self.consumed)


class State(StrEnum):
    """OPEN: factor 1. THROTTLE: between. PAUSE: factor 0."""

    OPEN = "OPEN"
    THROTTLE = "THROTTLE"
    PAUSE = "PAUSE"


@dataclass(frozen=True, slots=True)
class Factor:
    """How much of the base quota is left, 0.0..1.0, and why, in words an operator reads.

    Raises:
        ValueError: value is not a number in [0, 1].
    """

    value: float
    cause: str = ""

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ValueError(f"factor {value!r} must be a number from 0.0 to 1.0")

    @property
    def state(self) -> State:
        """OPEN at 1, PAUSE at 0, THROTTLE between."""
        if self.value >= 1:
            return State.OPEN
        return State.PAUSE if self.value <= 0 else State.THROTTLE


@dataclass(frozen=True, slots=True)
class ClusterVolumes:
    """The newest fresh volumes of every active broker, or why they are not known.

    ``unknown`` holds one sentence for each broker or volume whose state is unknown; empty
    means that all is known. ``waiting`` says what a source that has just started still waits for: until
    ``startup.grace`` is over this is no failure. What is known counts all the while.
    """

    volumes: tuple[Volume, ...]
    unknown: tuple[str, ...] = ()
    waiting: str = ""
