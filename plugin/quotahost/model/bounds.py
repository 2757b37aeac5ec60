"""From a volume's limits to its factor: the one place that decides it, in whole bytes.

The policies ask here, and so do ``doctor`` and the pipeline, so that all of them find the same factor of the same
volume, to the last bit. Private; :mod:`quotahost.pipeline.frames` has the same in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quotahost.model.limits import Limit, exact
from quotahost.model.volumes import Volume

_SWITCH: Final = 20  # a switch lets go over a twentieth of the bytes at which it stops: it has no way of its own


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which consumptions, in bytes, a volume's factor falls from 1 to 0; ``soft <= hard``.

    Attributes:
        soft: the factor is 1 up to here.
        hard: the factor is 0 from here on.
        contradict: the hard limit is reached before the soft one; both attributes are the hard limit then.
    """

    soft: int
    hard: int
    contradict: bool = False

    def breaches_hard(self, consumed: int) -> bool:
        """Whether the hard limit is reached; then the factor is 0."""
        return consumed >= self.hard

    def breaches_soft(self, consumed: int) -> bool:
        """Whether the soft limit is exceeded; else the factor is 1."""
        # Where both limits are the same, there is no consumption between them: the hard one decides alone.
        return consumed > self.soft or self.breaches_hard(consumed)

    def may_lower(self, consumed: int) -> bool:
        """Whether the factor may be below 1: above soft, or below a switch where a PAUSE may still hold."""
        return self.breaches_soft(consumed) or consumed > self.lets_go_at(1.0)

    def ramp(self, consumed: int) -> float:
        """1 at or below soft, 0 at or above hard, in proportion between (proposal 035, quota policy)."""
        # The hard limit comes first: where both are the same it is a switch, and nothing is divided by 0 below.
        if self.breaches_hard(consumed):
            return 0.0
        if not self.breaches_soft(consumed):
            return 1.0
        # Of whole numbers Python returns the float nearest to the quotient, however large they are.
        return (self.hard - consumed) / (self.hard - self.soft)

    def lets_go_at(self, share: float) -> int:
        """The most bytes consumed at which a PAUSE may end: this share, 0.0 to 1.0, of the way back is free then.

        The way back goes from the hard limit to the soft one. A switch has none, so a twentieth of its limit counts.
        """
        way = self.hard - self.soft or self.hard // _SWITCH
        # Exactly: as a float the way of a large volume may be longer than it is, and the end beyond the soft limit.
        return self.hard - int(way * exact(share))


def bounds(volume: Volume, soft: Limit | None, hard: Limit | None) -> Bounds | None:
    """These limits as bytes of this volume; None without limits.

    A soft limit alone has nothing to fall towards, so the capacity is its hard limit. A hard limit alone is a switch.
    A limit beyond the capacity could never be reached, so the capacity takes its place.
    """
    if soft is None and hard is None:
        return None
    at_soft, at_hard = (
        volume.capacity if limit is None else min(limit.consumed_at(volume.capacity), volume.capacity)
        # Without a soft limit the hard one stands for both, which makes the switch.
        for limit in (soft or hard, hard)
    )
    return Bounds(min(at_soft, at_hard), at_hard, contradict=at_hard < at_soft)
