"""How a volume would have filled if clients had been slowed otherwise than they were.

What a volume gained between two readings is multiplied by the share of their quotas that clients would have had then,
over the share that they had. So it is taken that clients use their quotas whole while they are slowed. What a volume
lost is left as it was: deletions follow retention, and not the factor.
"""

from __future__ import annotations

from math import exp
from typing import Final

#: Below this mean share so little came in that it says nothing of what would have come.
LEAST: Final = 0.05
_MEMORY: Final = 300.0  # seconds at full share over which the demand is measured


class Growth:
    """One volume's consumption as it would have been.

    Attributes:
        used: bytes.
        estimated: whether bytes are in it that nobody wrote, as clients were paused then.
    """

    def __init__(self, used: int) -> None:
        self.used, self.estimated = float(used), False
        self._then = used
        self._gained = self._open_s = 0.0

    def add(self, used: int, seconds: float, then_s: float, new_s: float) -> None:
        """Take the next reading.

        Args:
            used: bytes consumed, as recorded.
            seconds: since the last reading.
            then_s: seconds at full share that are worth the shares then.
            new_s: the same with the new settings.
        """
        more, self._then = used - self._then, used
        if then_s < LEAST * seconds:
            # No factor stops what comes now: a reassignment, or exempt clients.
            self.used += more + self._missed(then_s, new_s)
        elif more < 0:
            self.used += more
        else:
            self.used += more * (new_s / then_s if new_s != then_s else 1.0)
        if then_s >= LEAST * seconds:
            self._learn(max(0, more), then_s)
        self.used = max(0.0, self.used)

    def _missed(self, then_s: float, new_s: float) -> float:
        """What clients would have written besides, if they had gone on as before the PAUSE."""
        if new_s <= then_s or not self._open_s:
            return 0.0
        missed = self._gained / self._open_s * (new_s - then_s)
        self.estimated = self.estimated or missed >= 1
        return missed

    def _learn(self, gained: int, open_s: float) -> None:
        kept = exp(-open_s / _MEMORY)
        self._gained, self._open_s = self._gained * kept + gained, self._open_s * kept + open_s
