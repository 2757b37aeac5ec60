"""One limit of a volume, soft or hard: bytes consumed, bytes free, or a free share.

What they come to on one volume, in bytes and as a factor, is in :mod:`quotahost.model.volumes`. The types are public,
by :mod:`quotahost.model`; the functions are private.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from quotahost.units.show import counted


class LimitType(StrEnum):
    """What a limit is about, by the names of proposal 035's JSON schema (its "Limit Types")."""

    CONSUMED_BYTES = "ConsumedBytes"
    MIN_FREE_BYTES = "MinFreeBytes"
    MIN_FREE_PERCENTAGE = "MinFreePercentage"


@dataclass(frozen=True, slots=True)
class Limit:
    """How full a volume may become (proposal 035, Limit Definition). Raises ValueError for another level or type."""

    type: LimitType
    #: Whole bytes that may not be exceeded (consumed), or fallen below (free); for MIN_FREE_PERCENTAGE percent of the
    #: capacity, 0 to 100. A float stands for the decimal that it prints as, so 0.1 is exactly a tenth of a percent.
    level: int | float

    def __post_init__(self) -> None:
        if not isinstance(self.type, LimitType):
            raise ValueError(f"limit type must be a LimitType, not {self.type!r}")
        level = self.level
        # For isinstance a bool is an int: true in a record would be a limit of one byte.
        if isinstance(level, bool) or not isinstance(level, int | float):
            raise ValueError(f"the level of a {self.type} limit must be a number, not {level!r}")
        # NaN fails any comparison, so it is refused here as well.
        if not 0 <= level < math.inf:
            raise ValueError(f"the level of a {self.type} limit must be finite and at least 0, not {level!r}")
        if self.type is LimitType.MIN_FREE_PERCENTAGE:
            if level > 100:
                raise ValueError(f"the level of a {self.type} limit must be at most 100 %, not {level!r}")
        elif level != int(level):
            raise ValueError(f"the level of a {self.type} limit must be whole bytes, not {level!r}")
        else:
            # A frozen dataclass takes another value in no other way.
            object.__setattr__(self, "level", int(level))

    def __str__(self) -> str:
        """As an operator reads it: ``MinFreePercentage 5 %``, ``ConsumedBytes 1,000,000 bytes``."""
        if self.type is LimitType.MIN_FREE_PERCENTAGE:
            return f"{self.type} {self.level:g} %"
        return f"{self.type} {counted(self.level, 'bytes')}"

    def consumed_at(self, capacity: int) -> int:
        """The consumption, in bytes, at which a volume of this capacity (bytes) reaches the limit.

        Only so can limits of different types be compared. It is never below 0: a volume that is smaller than the free
        space demanded is at its limit when it is empty. A fraction of a byte of free space is rounded up to one.
        """
        if self.type is LimitType.CONSUMED_BYTES:
            return int(self.level)
        if self.type is LimitType.MIN_FREE_BYTES:
            return max(0, capacity - int(self.level))
        return max(0, capacity - _part(self.level, capacity))


# Cached, since a fraction's arithmetic for each of 20,000 volumes would take a quarter of a second.
@lru_cache(maxsize=65_536)
def _part(percent: float, capacity: int) -> int:
    return math.ceil(capacity * exact(percent) / 100)


def exact(level: float) -> Fraction:
    """The decimal number that a float prints as, without the error of its binary form."""
    # By its digits: Fraction(0.1) would be the binary number beside it. NumPy's floats print themselves otherwise.
    return Fraction(repr(float(level)))
