"""The policy ``setpoint``: lets in as much as is deleted, so that a volume rests half way between its limits.

The ramp of ``limits`` looks only at how full a volume is, so a heavy load comes to rest next to the hard limit, and the
factor moves with every lump of deletions. This policy does what Linux does for dirty pages (``balance_dirty_pages`` in
mm/page-writeback.c). How fast the volume drains, divided by how fast it would fill at factor 1, is the factor at which
it stays as full as it is. That is multiplied by a cubic ratio: about 1 in the middle, so that a lump of deletions
hardly moves the factor, 2 at the soft and 0 at the hard limit. Proposal 035 has no such policy; its own is
proportional.
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

MAX_VOLUMES: Final = 4096  # to remember; any more get the ramp
_MOVING: Final = 10.0  # seconds after which 1/e of the way to the wanted factor is left: it never jumps
_SPARE: Final = 3600.0  # seconds for which the space left lasts at least, if nothing is deleted
_REST: Final = 0.01  # of the way between the limits, before hard, where it comes to rest if nothing is ever deleted
_OPEN: Final = 0.995  # from here on the factor is 1, which it would approach and never reach
_GUARD_ALL: Final = 0.1  # where the ramp is at most this, the factor is no larger than the ramp
_GUARD_NONE: Final = 0.2  # where the ramp is at least this, it doesn't restrict the factor


def _largest_allowed(ramp: float) -> float:
    """The ramp itself in its last tenth; in the tenth before that it rises from there to 1, without a jump."""
    if ramp <= _GUARD_ALL:
        return ramp
    return min(1.0, _GUARD_ALL + (1 - _GUARD_ALL) * (ramp - _GUARD_ALL) / (_GUARD_NONE - _GUARD_ALL))


@dataclass(slots=True)
class _History:
    """How one volume filled and drained, and under which factors. All sums fade alike, over about the memory."""

    seen_at: float  # when the host last asked about it, in seconds
    consumed: int  # bytes, then
    factor: float  # the answer, then
    watched: float = 0.0  # seconds
    open_time: float = 0.0  # seconds at factor 1 that are worth the factors in force meanwhile
    filled: float = 0.0  # bytes by which it filled
    freed: float = 0.0  # bytes by which it drained, less those that came while the factor was 0

    def add(self, now: float, consumed: int, in_force: float, memory: float) -> float:
        """Take a measurement, and the factor that was in force since the last one; the seconds since that."""
        passed, more = max(0.0, now - self.seen_at), consumed - self.consumed
        kept = math.exp(-passed / memory)
        self.watched = self.watched * kept + passed
        # A second at factor 0.5 is worth half a second at factor 1.
        self.open_time = self.open_time * kept + in_force * passed
        self.filled *= kept
        self.freed *= kept
        # No factor stops a reassignment: what comes at factor 0 tells nothing of the producers, and uses up space.
        if more < 0 or in_force == 0:
            self.freed -= more
        else:
            self.filled += more
        self.seen_at, self.consumed = now, consumed
        return passed

    def next(self, bounds: ByteLimits, ramp: float, passed: float) -> float:
        """The factor after so many seconds on the way to the wanted one, between the limits."""
        wanted = self._wanted(bounds, ramp)
        # After a PAUSE it needn't be approached: the limits rise slowly enough, and clients have waited.
        moved = wanted + (self.factor - wanted) * math.exp(-passed / _MOVING) if self.factor else wanted
        factor = min(moved, _largest_allowed(ramp))
        return 1.0 if factor > _OPEN else factor

    def _wanted(self, bounds: ByteLimits, ramp: float) -> float:
        # Without time between two looks, or after nothing but PAUSE, nothing is known.
        if not self.watched or not self.open_time:
            return ramp
        demand = self.filled / self.open_time  # bytes/s at factor 1
        band = bounds.hard - bounds.soft
        spare = max(0.0, ramp - _REST) * band / _SPARE
        # A volume that hardly fills needs no throttling, however full it is.
        slowest = spare / demand if demand > spare else 1.0
        # 1 half way between the limits, 2 at soft and 0 at hard; flat in the middle (Linux: ``pos_ratio_polynom``).
        position = 1 + (2 * ramp - 1) ** 3
        return min(1.0, max(self._balance(demand, band) * position, slowest))

    def _balance(self, demand: float, band: int) -> float:
        """The factor at which the volume would stay as full as it is.

        Two looks show only the difference of writes and deletions; what happened on both sides is hidden, and where
        deletions are even that is nearly everything. So the mean factor of the past, at which the rest was in balance,
        counts as well, as much as a band of bytes: after that the measurement weighs more.
        """
        hidden, mean = band / self.watched, self.open_time / self.watched
        return (max(0.0, self.freed) / self.watched + hidden * mean) / (demand + hidden)


class Setpoint(Limits):
    """Balances what flows in with what deletions free; if nothing is deleted, the space left is let in over hours.

    The limits in force, and the factors below the soft and from the hard limit on, are those of ``limits``. A volume
    starts with the ramp.
    """

    # The factor moves on while the volumes stay as they are, so the host must ask after every read.
    depends_on_time: ClassVar = True

    class Section(sections.Section):
        """The properties under ``plugin.setpoint.``."""

        memory: Duration = Field(
            default=timedelta(minutes=20),
            description="Time over which the policy measures how a volume fills and drains; several times as long as "
            "from one deletion to the next.",
        )

    def __init__(self, context: Context[Section], clock: Clock = time.monotonic) -> None:
        super().__init__(context)
        self._clock = clock
        self._histories: dict[tuple[str, str], _History] = {}
        self._in_force = 1.0
        self.reconfigure(context.section)

    def reconfigure(self, section: Section) -> None:
        """What was learned stays."""
        self._memory = section.memory.total_seconds()

    def factor_in_force(self, factor: float) -> None:
        self._in_force = factor

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard; between, the factor that keeps the volume half way."""
        bounds = self._bounds(volume)
        if bounds is None:
            return 1.0
        now, ramp = self._clock(), bounds.ramp(volume.consumed)
        place = volume.broker, volume.name
        history = self._histories.get(place)
        if history is None:
            # No older history makes room: the names come from other brokers, and a flood of them must push none out.
            if len(self._histories) < MAX_VOLUMES:
                self._histories[place] = _History(now, volume.consumed, ramp)
            return ramp
        # Measured below soft and above hard, too, so that the policy knows the demand once it has to throttle.
        passed = history.add(now, volume.consumed, self._factor_over(volume, history), self._memory)
        history.factor = history.next(bounds, ramp, passed) if 0.0 < ramp < 1.0 else ramp
        return history.factor

    def _factor_over(self, volume: Volume, history: _History) -> float:
        """The factor under which the volume filled: with ``factor.scope=topics`` none if it had no part in it."""
        if volume.broker == BUDGET:  # whose factor alone is for those who write there
            return history.factor
        # As far as is known here: a client that writes to this volume and to a fuller one is slowed all the same.
        spared = history.factor >= 1 and self._context.settings.factor_scope == "topics"
        return 1.0 if spared else self._in_force
