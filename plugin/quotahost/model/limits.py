"""A limit of a volume, soft or hard, is in bytes consumed, bytes free, or percent free.

:mod:`quotahost.model.volumes` converts the limits of a volume to bytes and to a factor. The types are public through
:mod:`quotahost.model`; the functions are private.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from quotahost.units.show import counted


class LimitType(StrEnum):
    """The types of limits, named as in proposal 035's JSON schema ("Limit Types")."""

    CONSUMED_BYTES = "ConsumedBytes"
    MIN_FREE_BYTES = "MinFreeBytes"
    MIN_FREE_PERCENTAGE = "MinFreePercentage"


@dataclass(frozen=True, slots=True)
class Limit:
    """How full a volume may become (proposal 035, Limit Definition). Raises ValueError for an invalid level or type."""

    type: LimitType
    #: The most bytes consumed or the least bytes free, as whole bytes; for MIN_FREE_PERCENTAGE the least percent of the
    #: capacity that is free (0 to 100). A float is the decimal that it prints as: 0.1 is exactly a tenth of a percent.
    level: int | float

    def __post_init__(self) -> None:
        if not isinstance(self.type, LimitType):
            raise ValueError(f"limit type must be a LimitType, not {self.type!r}")
        level = self.level
        # isinstance takes a bool for an int: ``true`` in a record would be a limit of one byte.
        if isinstance(level, bool) or not isinstance(level, int | float):
            raise ValueError(f"the level of a {self.type} limit must be a number, not {level!r}")
        # This also refuses NaN, which fails any comparison.
        if not 0 <= level < math.inf:
            raise ValueError(f"the level of a {self.type} limit must be finite and at least 0, not {level!r}")
        if self.type is LimitType.MIN_FREE_PERCENTAGE:
            if level > 100:
                raise ValueError(f"the level of a {self.type} limit must be at most 100 %, not {level!r}")
        elif level != int(level):
            raise ValueError(f"the level of a {self.type} limit must be whole bytes, not {level!r}")
        else:
            # A frozen dataclass allows no normal assignment.
            object.__setattr__(self, "level", int(level))

    def __str__(self) -> str:
        """The limit for an operator to read: ``MinFreePercentage 5 %``, ``ConsumedBytes 1,000,000 bytes``."""
        if self.type is LimitType.MIN_FREE_PERCENTAGE:
            return f"{self.type} {self.level:g} %"
        return f"{self.type} {counted(self.level, 'bytes')}"

    def consumed_at(self, capacity: int) -> int:
        """The consumption, in bytes, at which a volume of this capacity (bytes) reaches the limit.

        This makes limits of different types comparable. The result is at least 0: if a volume is smaller than the free
        space that the limit demands, the empty volume is at its limit. Free space is rounded up to whole bytes.
        """
        if self.type is LimitType.CONSUMED_BYTES:
            return int(self.level)
        if self.type is LimitType.MIN_FREE_BYTES:
            return max(0, capacity - int(self.level))
        return max(0, capacity - _part(self.level, capacity))


# Cached, because arithmetic with fractions would take a quarter of a second for 20,000 volumes.
@lru_cache(maxsize=65_536)
def _part(percent: float, capacity: int) -> int:
    return math.ceil(capacity * exact(percent) / 100)


def exact(level: float) -> Fraction:
    """The decimal number that a float prints as, without the error of its binary form."""
    # Fraction(0.1) would be the nearest binary number. float() comes first, because NumPy's floats have another repr.
    return Fraction(repr(float(level)))
