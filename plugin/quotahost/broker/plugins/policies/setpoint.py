"""The policy ``setpoint`` lets producers write as much as is deleted, and keeps a volume half way between its limits.

The ramp of ``limits`` depends only on how full a volume is. So under a heavy load the volume settles next to the hard
limit, and the factor changes with every deletion of segments. This policy does what Linux does for dirty pages
(``balance_dirty_pages`` in mm/page-writeback.c). It divides the rate at which the volume drains by the rate at which
the volume would fill at factor 1: with this factor, the volume stays as full as it is. Then the policy multiplies this
factor by a cubic ratio, which is 2 at the soft limit, 0 at the hard limit, and about 1 in the middle, so that a
deletion hardly changes the factor. Proposal 035 has no such policy; its own policy is proportional.
"""

import math
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from pydantic import Field

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.model import Volume
from quotahost.model.budgets import BUDGET
from quotahost.model.volumes import ByteLimits
from quotahost.settings import sections
from quotahost.units import Duration

MAX_VOLUMES: Final = 4096  # volumes that are remembered; further volumes get the ramp
_MOVING: Final = 10.0  # seconds after which 1/e of the distance to the wanted factor is left, so the factor never jumps
_SPARE: Final = 3600.0  # seconds for which the free space lasts at least if nothing is deleted
_REST: Final = 0.01  # if nothing is deleted, this part of the band below the hard limit stays free
_OPEN: Final = 0.995  # a larger factor becomes 1; without that, the factor would approach 1 and never reach it
_GUARD_ALL: Final = 0.1  # if the ramp is at most this, the factor is no larger than the ramp
_GUARD_NONE: Final = 0.2  # if the ramp is at least this, it doesn't restrict the factor


def _largest_allowed(ramp: float) -> float:
    """The largest factor at this ramp: the ramp itself up to 0.1; from 0.1 to 0.2 it rises from 0.1 to 1."""
    if ramp <= _GUARD_ALL:
        return ramp
    return min(1.0, _GUARD_ALL + (1 - _GUARD_ALL) * (ramp - _GUARD_ALL) / (_GUARD_NONE - _GUARD_ALL))


@dataclass(slots=True)
class _History:
    """How one volume filled and drained, and its factors. All sums decay with the time constant ``memory``."""

    seen_at: float  # when the host last asked about the volume, in seconds
    consumed: int  # bytes at that time
    factor: float  # the answer at that time
    watched: float = 0.0  # seconds of measurement
    open_time: float = 0.0  # the sum of seconds x factor in force: the equivalent seconds at factor 1
    filled: float = 0.0  # bytes by which the volume filled
    freed: float = 0.0  # bytes by which the volume drained, minus the bytes that came while the factor was 0

    def add(self, now: float, consumed: int, in_force: float, memory: float) -> float:
        """Add a measurement and the factor in force since the previous one; return the seconds since then."""
        passed, more = max(0.0, now - self.seen_at), consumed - self.consumed
        kept = math.exp(-passed / memory)
        self.watched = self.watched * kept + passed
        # A second at factor 0.5 is worth half a second at factor 1.
        self.open_time = self.open_time * kept + in_force * passed
        self.filled *= kept
        self.freed *= kept
        # Factor 0 doesn't stop a reassignment. Bytes that come then are not from producers but use up freed space.
        if more < 0 or in_force == 0:
            self.freed -= more
        else:
            self.filled += more
        self.seen_at, self.consumed = now, consumed
        return passed

    def next(self, bounds: ByteLimits, ramp: float, passed: float) -> float:
        """The factor ``passed`` seconds later on its way to the wanted one, for a volume between its limits."""
        wanted = self._wanted(bounds, ramp)
        # After a PAUSE the factor jumps: the tap raises the limits slowly enough, and clients have waited.
        moved = wanted + (self.factor - wanted) * math.exp(-passed / _MOVING) if self.factor else wanted
        factor = min(moved, _largest_allowed(ramp))
        return 1.0 if factor > _OPEN else factor

    def _wanted(self, bounds: ByteLimits, ramp: float) -> float:
        # If no time has passed between two looks, or all of it in PAUSE, the demand is unknown.
        if not self.watched or not self.open_time:
            return ramp
        demand = self.filled / self.open_time  # bytes/s at factor 1
        band = bounds.hard - bounds.soft
        spare = max(0.0, ramp - _REST) * band / _SPARE
        # A volume that hardly fills needs no throttling, however full the volume is.
        slowest = spare / demand if demand > spare else 1.0
        # The ratio is 1 half way between the limits, 2 at soft, 0 at hard (Linux: ``pos_ratio_polynom``).
        position = 1 + (2 * ramp - 1) ** 3
        return min(1.0, max(self._balance(demand, band) * position, slowest))

    def _balance(self, demand: float, band: int) -> float:
        """The factor at which the volume would stay as full as it is.

        Two looks show only the difference between writes and deletions. Equal amounts on both sides stay hidden, and
        if deletions are even, nearly all bytes are hidden. The hidden bytes were in balance at the mean past factor.
        So this factor has the weight of one band of bytes; after more bytes, the measurement weighs more.
        """
        hidden, mean = band / self.watched, self.open_time / self.watched
        return (max(0.0, self.freed) / self.watched + hidden * mean) / (demand + hidden)


class Setpoint(Limits):
    """Balances writes with deletions; if nothing is deleted, the free space fills over hours.

    The limits in force, the factor up to the soft limit, and the factor from the hard limit on are the same as with
    the policy ``limits``. A volume's first factor is the ramp.
    """

    # The factor changes over time even if the volumes don't, so the host must ask after every read.
    depends_on_time: ClassVar = True

    class Section(sections.Section):
        """The properties under ``plugin.setpoint.``."""

        memory: Duration = Field(
            default=timedelta(minutes=20),
            description="Time over which the policy measures how a volume fills and drains; set it to several times "
            "the time from one deletion to the next.",
        )

    def __init__(self, context: Context[Section], clock: Clock = time.monotonic) -> None:
        super().__init__(context)
        self._clock = clock
        self._histories: dict[tuple[str, str], _History] = {}
        self._in_force = 1.0
        self.reconfigure(context.section)

    def reconfigure(self, section: Section) -> None:
        """Apply a new ``memory``; the histories stay."""
        self._memory = section.memory.total_seconds()

    def factor_in_force(self, factor: float) -> None:
        self._in_force = factor

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard, and between them the factor that keeps the volume half way."""
        bounds = self._bounds(volume)
        if bounds is None:
            return 1.0
        now, ramp = self._clock(), bounds.ramp(volume.consumed)
        place = volume.broker, volume.name
        history = self._histories.pop(place, None)  # the volume that was seen last comes last
        if history is None:
            # Volumes and budgets come and go. A flood of names from other brokers must push out no known volume.
            first = next(iter(self._histories.items()), None)
            if first and len(self._histories) >= MAX_VOLUMES and now - first[1].seen_at > self._memory:
                del self._histories[first[0]]
            if len(self._histories) < MAX_VOLUMES:
                self._histories[place] = _History(now, volume.consumed, ramp)
            return ramp
        self._histories[place] = history
        # The policy also measures below soft and above hard, so that it knows the demand before it has to throttle.
        passed = history.add(now, volume.consumed, self._factor_over(volume, history), self._memory)
        history.factor = history.next(bounds, ramp, passed) if 0.0 < ramp < 1.0 else ramp
        return history.factor

    def _factor_over(self, volume: Volume, history: _History) -> float:
        """The factor under which the volume filled; with ``factor.scope=topics`` a volume at 1 slowed nobody."""
        if volume.broker == BUDGET:  # only the budget's own factor slows the writers to its topics
            return history.factor
        # This is an approximation: a client that writes to this volume and to a fuller one is slowed all the same.
        spared = history.factor >= 1 and self._context.settings.factor_scope == "topics"
        return 1.0 if spared else self._in_force
