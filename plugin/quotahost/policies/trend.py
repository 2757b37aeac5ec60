"""How fast a volume fills for each unit of factor, and how a factor moves towards the one it should have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

SMOOTHING: Final = 30.0  # seconds after which growth weighs 1/e: producers' bursts are shorter
MOVING: Final = 10.0  # seconds after which 1/e of the way to the factor wanted is left: it never jumps
LEAST: Final = 1e-6  # growth at factor 0, by a reassignment, must not make 0 the factor for ever


@dataclass(slots=True)
class Trend:
    """What is remembered of one volume.

    Growth and the factor under which it happened are smoothed alike, so that their quotient, the demand, stays
    right while the factor moves: no delay but that of the measurement is in the control loop.

    Attributes:
        at: when it was seen last, in seconds.
        consumed: bytes, then.
        factor: what it was given, then.
        turn: the round of questions in which that was.
        grown: bytes that it has grown by, deletions not counted, over about SMOOTHING.
        opened: seconds at factor 1 in which it did.
        deleted: bytes deleted, over about the horizon.
    """

    at: float
    consumed: int
    factor: float
    turn: int
    grown: float = 0.0
    opened: float = 0.0
    deleted: float = 0.0

    def see(self, now: float, consumed: int, applied: float, horizon: float) -> float:
        """Take a measurement, and the factor that held since the last one; answers the seconds since."""
        passed, more = max(0.0, now - self.at), consumed - self.consumed
        kept = math.exp(-passed / SMOOTHING)
        self.grown = self.grown * kept + max(0, more)
        self.opened = self.opened * kept + max(applied, LEAST) * passed
        self.deleted = self.deleted * math.exp(-passed / horizon) + max(0, -more)
        self.at, self.consumed = now, consumed
        return passed

    def wanted(self, left: int, horizon: float) -> float:
        """The factor at which it takes the horizon (seconds) to fill the bytes left and those that deletions
        free in that time, if these go on; 1 if the volume doesn't grow, or no time has passed to tell by.
        """
        if self.grown <= 0.0 or self.opened <= 0.0:
            return 1.0
        return min(1.0, (left + self.deleted) / horizon * self.opened / self.grown)

    def move(self, wanted: float, passed: float) -> float:
        """The factor after so many seconds on the way to the one wanted."""
        return wanted + (self.factor - wanted) * math.exp(-passed / MOVING)
