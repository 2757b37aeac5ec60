"""The one-minute rate of yammer's ``Meter`` (metrics-core 2.2.0), which Kafka's BytesInPerSec and others show.

The design note "Broker side quota (V1)" measures by it. Every 5 s the meter takes the mean of what was marked in
these 5 s: ``rate += alpha x (mean - rate)``, alpha being ``1 - exp(-5 / 60)``; the first tick sets the rate.
"""

import math
from typing import Final

TICK_MS: Final = 5000
ALPHA: Final = 1 - math.exp(-TICK_MS / 1000 / 60.0)


class EwmaMeter:
    """The exponentially weighted moving average of marks. A tick comes before a mark at the same time."""

    def __init__(self, start_ms: int = 0) -> None:
        self._next_ms = start_ms + TICK_MS
        self._uncounted = 0
        self._rate: float | None = None

    def mark(self, n: int, now_ms: int) -> None:
        self._ticks_until(now_ms)
        self._uncounted += n

    def rate(self, now_ms: int) -> float:
        self._ticks_until(now_ms)
        return self._rate or 0.0

    def _ticks_until(self, now_ms: int) -> None:
        while self._next_ms <= now_ms:
            self._next_ms += TICK_MS
            mean, self._uncounted = self._uncounted / (TICK_MS / 1000), 0
            self._rate = mean if self._rate is None else self._rate + ALPHA * (mean - self._rate)
