"""A broker's one volume, on the clock of a run: writers fill it, retention and an operator free it.

A run has no clock of its own: it jumps from event to event (``Events``), and each event may ask for later ones. The
disk is asked how full it is at any time, and is exact although some writers fill it steadily and not by batches.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count

from quotahost.cli.lab.scenes import DiskPlan
from quotahost.model import Volume
from quotahost.model.volumes import ByteLimits


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
        self.at(self.now + ms, do)

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


class Disk:
    """The bytes on a volume.

    Attributes:
        volume: its name, as the host sees it, with limits if they are its own.
        bounds: between which consumptions the factor falls.
        low: at how many bytes used a PAUSE of it may end (``pause.resume.free-share``).
        full_since: since when it has been at its hard limit without a break, in ms; None if it isn't.
        low_since: since when a PAUSE of it may end; None if it may not.
        calm_since: since when it has been below its soft limit; None if it isn't.
        appended_full: bytes that clients have appended since it was full.
    """

    def __init__(self, plan: DiskPlan, volume: Volume, bounds: ByteLimits, low: int, events: Events) -> None:
        self._plan, self.volume, self.bounds, self.low, self._events = plan, volume, bounds, low, events
        self._soft = min(bounds.soft, bounds.hard - 1)
        self._used, self._rates, self._rate, self._settled_at = float(plan.used), dict[str, float](), 0.0, 0
        self._flown = 0.0  # bytes of those that clients let flow in, since the last retention
        self._written: deque[float] = deque()
        self.full_since: int | None = None
        self.low_since: int | None = None
        self.calm_since: int | None = None
        self.appended_full = 0
        if plan.drain or plan.kept:
            events.at(plan.lump, self._retention)
        for ms, rate in plan.others:
            events.at(ms, partial(self.flow, "", rate))
        for ms, size in plan.cleanups:
            events.at(ms, partial(self._free, size))
        self._check(plan.used)

    def used(self) -> int:
        """Bytes consumed now; to look changes nothing of a run."""
        used = int(self._used + self._rate * (self._events.now - self._settled_at) / 1000)
        self._check(used)
        return used

    def append(self, size: int) -> None:
        """A client's bytes, or a copy of them."""
        self._add(size)
        self._flown += size
        if self.full_since is not None:
            self.appended_full += size

    def flow(self, client: str, rate: float) -> None:
        """A client writes steadily from now on, at so many bytes/s; "" is whoever has no quota."""
        self._add(0)
        self._rates[client] = rate
        self._rate = sum(self._rates.values())

    def _retention(self) -> None:
        self._add(0)
        lump = self._plan.drain * self._plan.lump / 1000
        if self._plan.kept:
            self._written.append(self._flown)
            self._flown = 0.0
            lump = self._written.popleft() if len(self._written) > self._plan.kept // self._plan.lump else 0.0
        self._free(int(lump))
        self._events.after(self._plan.lump, self._retention)

    def _free(self, size: int) -> None:
        self._add(0)
        self._used = max(0.0, int(self._used) - float(size))
        self._check(int(self._used))

    def _add(self, size: int) -> None:
        """What has flown in until now, and so many bytes."""
        seconds = (self._events.now - self._settled_at) / 1000
        self._used += self._rate * seconds
        self._flown += (self._rate - self._rates.get("", 0.0)) * seconds
        self._settled_at = self._events.now
        self._check(int(self._used))
        if size:
            self._used += size
            self._check(int(self._used))

    def _check(self, used: int) -> None:
        now = self._events.now
        if used < self.bounds.hard:
            self.full_since, self.appended_full = None, 0
        elif self.full_since is None:
            self.full_since = now
        if used > self.low:
            self.low_since = None
        elif self.low_since is None:
            self.low_since = now
        if used > self._soft:
            self.calm_since = None
        elif self.calm_since is None:
            self.calm_since = now
