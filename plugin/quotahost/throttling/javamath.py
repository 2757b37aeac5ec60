"""Java's arithmetic where it differs from Python's, so that the models give Kafka's very numbers.

Private to ``quotahost.throttling``.
"""

from __future__ import annotations

import math
from typing import Final

_LONG_MAX: Final = 2**63 - 1


def divide(a: float, b: float) -> float:
    """``a / b`` of doubles: by 0 it is infinite, or NaN for 0 / 0."""
    if b != 0:
        return a / b
    return math.copysign(math.inf, a) * math.copysign(1.0, b) if a and not math.isnan(a) else math.nan


def to_long(x: float) -> int:
    """``Math.round``: the nearest long, halves upwards; NaN is 0."""
    if math.isnan(x):
        return 0
    # Java gives the nearest long where Python's integers would grow.
    if abs(x) >= _LONG_MAX:
        return _LONG_MAX if x > 0 else -_LONG_MAX - 1
    # Not by round(), which takes halves to the even neighbour.
    floor = math.floor(x)
    return floor + (x - floor >= 0.5)


def to_int(x: int) -> int:
    """``(int)`` of a long: the low 32 bits, so that a number that is too large may become negative."""
    return (x + 2**31) % 2**32 - 2**31
