"""Soft and hard limit as bytes of one volume: only so can limits of different types be compared."""

from __future__ import annotations

from dataclasses import dataclass

from quotahost.model import Limit, Volume


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which consumptions, in bytes, a volume's factor falls from 1 to 0; ``soft <= hard``.

    Attributes:
        soft: the factor is 1 up to here.
        hard: the factor is 0 from here on.
        contradict: the hard limit is reached before the soft one; the hard one alone is in both.
    """

    soft: int
    hard: int
    contradict: bool = False

    def ramp(self, consumed: int) -> float:
        """1 at or below soft, 0 at or above hard, in proportion between (proposal 035, quota policy)."""
        if consumed >= self.hard:
            return 0.0
        if consumed <= self.soft:
            return 1.0
        return (self.hard - consumed) / (self.hard - self.soft)


def bounds(volume: Volume, soft: Limit | None, hard: Limit | None) -> Bounds | None:
    """What these limits are on this volume; None without limits.

    Soft alone has nothing to fall towards, so the capacity is its hard limit; hard alone is a switch. A limit
    beyond the capacity could never hold, and counts as the capacity.
    """
    if soft is None and hard is None:
        return None
    at_hard = volume.capacity if hard is None else _at(hard, volume)
    at_soft = at_hard if soft is None else _at(soft, volume)
    return Bounds(min(at_soft, at_hard), at_hard, contradict=at_hard < at_soft)


def _at(limit: Limit, volume: Volume) -> int:
    return min(limit.consumed_at(volume.capacity), volume.capacity)
