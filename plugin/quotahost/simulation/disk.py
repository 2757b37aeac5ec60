"""A broker's one volume: writers fill it, retention and an operator free it."""

from __future__ import annotations

from quotahost.model import Volume
from quotahost.model.bounds import Bounds
from quotahost.simulation.events import Events
from quotahost.simulation.scene import DiskPlan


class Disk:
    """Bytes on a volume, exact at any time although writers without a quota fill it steadily.

    Attributes:
        volume: its name, as the host sees it, with limits if they are its own.
        bounds: between which consumptions the factor falls.
        full_since: since when it has been at its hard limit without a break, in ms; None if it isn't.
        beyond: the most bytes beyond hard that clients have appended without a break.
    """

    def __init__(self, plan: DiskPlan, volume: Volume, bounds: Bounds, events: Events) -> None:
        self._plan, self.volume, self.bounds, self._events = plan, volume, bounds, events
        self._used, self._rate, self._settled_at = float(plan.used), 0.0, 0
        self.full_since: int | None = None
        self.beyond = self._appended_full = 0
        if plan.drain:
            events.at(plan.lump, self._retention)
        for ms, rate in plan.others:
            events.at(ms, lambda rate=rate: self._others(rate))
        for ms, size in plan.cleanups:
            events.at(ms, lambda size=size: self._free(size))
        self._check()

    def used(self) -> int:
        """Bytes consumed now."""
        now = self._events.now
        if self._rate and now > self._settled_at:
            self._used += self._rate * (now - self._settled_at) / 1000
            self._settled_at = now
            self._check()
        return int(self._used)

    def append(self, size: int) -> None:
        """A client's bytes, or a copy of them."""
        self.used()
        self._used += size
        if self._used >= self.bounds.hard:
            self._check()
            self._appended_full += size
            self.beyond = max(self.beyond, min(self._appended_full, int(self._used) - self.bounds.hard))

    def _others(self, rate: float) -> None:
        self.used()
        self._rate, self._settled_at = rate, self._events.now

    def _retention(self) -> None:
        self._free(int(self._plan.drain * self._plan.lump / 1000))
        self._events.after(self._plan.lump, self._retention)

    def _free(self, size: int) -> None:
        self._used = max(0.0, self.used() - float(size))
        self._check()

    def _check(self) -> None:
        if self._used < self.bounds.hard:
            self.full_since, self._appended_full = None, 0
        elif self.full_since is None:
            self.full_since = self._events.now
