"""The policy ``forecast``: throttles to a fill rate at which a volume never reaches its hard limit.

The ramp of ``limits`` looks only at how full a volume is, so its factor moves with every byte. This policy also learns
how fast each volume fills, and asks for the factor at which the bytes left last for a fixed time. It stands on
``limits`` for everything else: which limits are in force, and the ramp, close to the hard limit and at the start.
The host treats its factor as that of any policy. Proposal 035 has no such policy; its own is proportional.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.model import Volume
from quotahost.model.bounds import Bounds
from quotahost.plugins.policies.limits import Limits
from quotahost.units import Duration

MAX_VOLUMES: Final = 4096  # to remember; any more get the ramp
_FORGET: Final = 600.0  # seconds after which a volume that nobody asked about is forgotten
_SMOOTHING: Final = 30.0  # seconds after which what a volume did weighs 1/e: producers' bursts are shorter
_MOVING: Final = 10.0  # seconds after which 1/e of the way to the wanted factor is left: it never jumps
_LEAST: Final = 1e-6  # a reassignment fills a volume at factor 0, too, which must not make 0 the answer for ever
_OPEN: Final = 0.995  # from here on the factor is 1, which it would approach and never reach
_GUARD_ALL: Final = 0.1  # where the ramp is at most this, the factor is no larger than the ramp
_GUARD_NONE: Final = 0.5  # where the ramp is at least this, it doesn't restrict the factor


class Forecast(Limits):
    """Shares out the bytes left to the hard limit, and the bytes that deletions free, over the horizon.

    Between soft and hard limit a volume may fill at (bytes left) / horizon: it comes ever closer to the hard limit,
    ever slower, and never there. Bytes deleted in the last horizon are expected to be deleted in the next one
    too. The policy learns which factor that takes, over about 30 s, from how fast the volume filled under past
    factors; a volume that doesn't fill gets 1. The factor goes a tenth of the way per second, so that it never jumps.

    The limits in force, and the factors below the soft and from the hard limit on, are those of ``limits``. In the
    upper half of the way to the hard limit the largest allowed factor falls, and in the last tenth it is the ramp of
    ``limits``, whatever was learned. A volume starts with the ramp, and those beyond the 4,096 remembered keep it.

    Compared with the ramp: at a steady demand the factor hardly moves for minutes, where the ramp falls with every
    byte; deletions in lumps move it less. Where deletions are as even as a demand that is bursty, or lumps are
    as large as all the way from soft to hard, the ramp is the calmer one.
    """

    # The factor moves on while the volumes stay as they are, so the host must ask after every read.
    depends_on_time: ClassVar = True

    class Section(BaseModel):
        """The properties under ``plugin.forecast.``."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        horizon: Duration = Field(
            default=timedelta(minutes=10),
            description="Time for which the space left must last at the fill rate that is allowed now.",
        )

    def __init__(self, context: Context[Section], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic."""
        super().__init__(context)
        self._clock = clock
        self._histories: OrderedDict[tuple[str, str], _History] = OrderedDict()  # longest unseen first
        self._round, self._applied, self._smallest = 0, 1.0, 1.0
        self.reconfigure(context.section)

    def reconfigure(self, section: Section) -> None:
        """Use the new horizon from the next question on; what was learned stays."""
        self._horizon = section.horizon.total_seconds()

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard; between, the factor for the fill rate that is allowed."""
        bounds = self._bounds(volume)
        if bounds is None:
            return 1.0
        factor = self._next(volume, bounds)
        self._smallest = min(self._smallest, factor)
        return factor

    def _next(self, volume: Volume, bounds: Bounds) -> float:
        now, ramp = self._clock(), bounds.ramp(volume.consumed)
        # First, so that nothing that was learned too long ago is found.
        self._forget(now)
        history = self._histories.get((volume.broker, volume.name))
        if history is None:
            self._remember(volume, now, ramp)
            return ramp
        # Measured below soft and above hard, too, so that the policy knows the demand once it has to throttle.
        passed = self._measure(history, now, volume)
        if 0.0 < ramp < 1.0:
            wanted = history.wanted(bounds.hard - volume.consumed, self._horizon)
            # 0 if it was at the hard limit at the last look and no time has passed since: then the ramp is as good.
            moved = history.move(wanted, passed) or ramp
            factor = min(moved, _largest_allowed(ramp))
            history.factor = 1.0 if factor > _OPEN else factor
        else:
            history.factor = ramp
        return history.factor

    def _measure(self, history: _History, now: float, volume: Volume) -> float:
        """Add what the volume did to its history; the seconds since the last look."""
        # The host asks for every volume in turn, so the second question about one begins a new round.
        if history.round == self._round:
            # The smallest factor of the last round was in force for all volumes; in shadow mode none was.
            self._applied = 1.0 if self._context.settings.mode == "shadow" else self._smallest
            self._round, self._smallest = self._round + 1, 1.0
        history.round = self._round
        # Keeps the longest unseen first, where _forget looks.
        self._histories.move_to_end((volume.broker, volume.name))
        return history.add(now, volume.consumed, self._applied, self._horizon)

    def _remember(self, volume: Volume, now: float, factor: float) -> None:
        # No older history makes room: the names come from other brokers, and a flood of them must not push any out.
        if len(self._histories) < MAX_VOLUMES:
            history = _History(now, volume.consumed, factor, self._round)
            self._histories[volume.broker, volume.name] = history

    def _forget(self, now: float) -> None:
        while self._histories and now - next(iter(self._histories.values())).seen_at > _FORGET:
            self._histories.popitem(last=False)


def _largest_allowed(ramp: float) -> float:
    """The ramp itself in its last tenth; in the half before the hard limit it rises from there to 1, without a jump."""
    if ramp <= _GUARD_ALL:
        return ramp
    return min(1.0, _GUARD_ALL + (1 - _GUARD_ALL) * (ramp - _GUARD_ALL) / (_GUARD_NONE - _GUARD_ALL))


@dataclass(slots=True)
class _History:
    """How one volume filled, and under which factors.

    Filled bytes and the factors in force meanwhile are smoothed alike, so that their quotient, the fill rate at
    factor 1, stays right while the factor moves: the only delay in the control loop is that of the measurement.

    Attributes:
        seen_at: when the host last asked about it, in seconds.
        consumed: bytes, then.
        factor: the answer, then.
        round: the round of questions in which that was.
        filled: bytes by which it filled, deletions not subtracted, over about _SMOOTHING.
        open_time: seconds at factor 1 that are worth the factors in force meanwhile.
        deleted: bytes deleted, over about the horizon.
    """

    seen_at: float
    consumed: int
    factor: float
    round: int
    filled: float = 0.0
    open_time: float = 0.0
    deleted: float = 0.0

    def add(self, now: float, consumed: int, applied: float, horizon: float) -> float:
        """Take a measurement, and the factor that was in force since the last one; the seconds since that."""
        # Two looks show only the difference of writes and deletions: a rise counts as filled, a fall as deleted.
        passed, more = max(0.0, now - self.seen_at), consumed - self.consumed
        kept = math.exp(-passed / _SMOOTHING)
        self.filled = self.filled * kept + max(0, more)
        # A second at factor 0.5 is worth half a second at factor 1.
        self.open_time = self.open_time * kept + max(applied, _LEAST) * passed
        # Retention deletes in lumps, so deletions are remembered for much longer than what was filled.
        self.deleted = self.deleted * math.exp(-passed / horizon) + max(0, -more)
        self.seen_at, self.consumed = now, consumed
        return passed

    def wanted(self, left: int, horizon: float) -> float:
        """The factor at which filling the bytes left, and those that deletions free meanwhile, takes the horizon.

        1 if the volume doesn't fill, or as long as no time has passed in which it could be measured.
        """
        if self.filled <= 0.0 or self.open_time <= 0.0:
            return 1.0
        # The fill rate that is allowed, over the one that the volume would have at factor 1 (filled / open_time).
        return min(1.0, (left + self.deleted) / horizon * self.open_time / self.filled)

    def move(self, wanted: float, passed: float) -> float:
        """The factor after so many seconds on the way to the wanted one."""
        return wanted + (self.factor - wanted) * math.exp(-passed / _MOVING)
