"""Counts bytes and messages over time, and computes rates between any two moments.

A load counts in a meter what brokers acknowledge; tests and pictures read rates from the meter afterwards.
"""

import bisect
import math
import time
from typing import Final


class Meter:
    """A counter with a history. One thread adds, any thread reads.

    Times are ``time.monotonic()`` seconds, kept to 20 ms.
    """

    RESOLUTION: Final = 0.02

    def __init__(self) -> None:
        self.started: Final = time.monotonic()
        self.bytes = 0
        self.messages = 0
        self._times = [self.started]
        self._totals = [0]

    def add(self, size: int, messages: int = 1) -> None:
        """Counts some messages of ``size`` bytes in total."""
        self.bytes += size
        self.messages += messages
        now = time.monotonic()
        if now - self._times[-1] < self.RESOLUTION:
            self._totals[-1] = self.bytes
        else:
            self._totals.append(self.bytes)
            self._times.append(now)  # after its total, since a reader looks up the time first

    def total_at(self, moment: float) -> int:
        """Returns the bytes that were counted up to that moment."""
        at = bisect.bisect_right(self._times, moment) - 1
        return self._totals[at] if at >= 0 else 0

    def rate(self, start: float, end: float) -> float:
        """Returns bytes/s between two moments."""
        return (self.total_at(end) - self.total_at(start)) / (end - start)

    def smooth_rate(self, start: float, end: float) -> float:
        """Returns bytes/s between two moments, weighted: the middle counts most and the ends nothing (a Hann window).

        If the rate goes up and down in cycles, this is its mean, wherever in a cycle the ends lie. Over three cycles or
        more the error is a few percent.
        """
        first, last = (bisect.bisect_right(self._times, moment) for moment in (start, end))
        turn = 2 * math.pi / (end - start)
        weighted = sum(
            (self._totals[at] - self._totals[at - 1]) * (1 - math.cos(turn * (self._times[at] - start)))
            for at in range(max(1, first), last)
        )
        return weighted / (end - start)

    def rate_over(self, seconds: float) -> float:
        """Returns bytes/s over the last so many seconds."""
        now = time.monotonic()
        return self.rate(now - seconds, now)
