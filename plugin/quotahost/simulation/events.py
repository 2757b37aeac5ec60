"""What happens when: the clock of a run, which jumps from event to event."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Events:
    """Events in order of time, and of those at the same time in the order in which they were asked for.

    Attributes:
        now: ms from the start.
    """

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = count()

    def at(self, ms: int, do: Callable[[], None]) -> None:
        """Do this then; ``ms`` from the start, not before now."""
        heapq.heappush(self._heap, (ms, next(self._count), do))

    def after(self, ms: int, do: Callable[[], None]) -> None:
        """Do this so many ms from now."""
        heapq.heappush(self._heap, (self.now + ms, next(self._count), do))

    def clock(self) -> float:
        """Seconds, as the host and the plugins take them; it never begins at 0, as no monotonic clock does."""
        return 1000.0 + self.now / 1000

    def run(self, until: int) -> None:
        """Do all that is due before then; ms from the start."""
        heap = self._heap
        while heap and heap[0][0] < until:
            self.now, _, do = heapq.heappop(heap)
            do()
        self.now = until
