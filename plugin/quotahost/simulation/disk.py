"""A broker's one volume: writers fill it, retention and an operator free it."""

from __future__ import annotations

from functools import partial

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
        low_since: since when a PAUSE of it may end (``pause.resume.free-share``); None if it may not.
        calm_since: since when it has been below its soft limit; None if it isn't.
        appended_full: bytes that clients have appended since then.
        beyond: the most bytes that clients have appended between reaching the hard limit and falling below it.
    """

    def __init__(self, plan: DiskPlan, volume: Volume, bounds: Bounds, low: int, events: Events) -> None:
        """``low``: at how many bytes used a PAUSE may end."""
        self._plan, self.volume, self.bounds, self.low, self._events = plan, volume, bounds, low, events
        self._soft = min(bounds.soft, bounds.hard - 1)
        self._used, self._rate, self._settled_at = float(plan.used), 0.0, 0
        self.full_since: int | None = None
        self.low_since: int | None = None
        self.calm_since: int | None = None
        self.beyond = self.appended_full = 0
        if plan.drain:
            events.at(plan.lump, self._retention)
        for ms, rate in plan.others:
            events.at(ms, partial(self._others, rate))
        for ms, size in plan.cleanups:
            events.at(ms, partial(self._free, size))
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
        self._check()
        if self.full_since is not None:
            self.appended_full += size
            self.beyond = max(self.beyond, self.appended_full)

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
        now, used = self._events.now, int(self._used)
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
