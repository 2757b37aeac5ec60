"""The policy ``forecast``: throttles to a growth by which a volume never reaches its hard limit."""

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
from quotahost.plugins.policies.bounds import Bounds
from quotahost.plugins.policies.limits import Limits
from quotahost.units import Duration

# TODO(merge) How fast a volume fills for each unit of factor, and how a factor moves towards the one it
#   should have.


MAX_VOLUMES: Final = 4096


FORGET: Final = 600.0  # seconds


GUARDED: Final = 0.1  # the share of the way from soft to hard, before hard, where the ramp holds


GUIDED: Final = 0.5  # the share from where the most allowed falls to that


class Forecast(Limits):
    """Shares out the bytes left to the hard limit, and what deletions free, over the horizon.

    Between soft and hard limit a volume may grow by the bytes left / the horizon: it comes ever closer to hard,
    ever slower, and never there. Bytes deleted in the last horizon are expected to be deleted in the next one
    too. Which factor that takes is learned, over about 30 s, from how the volume grew under past factors; one
    that doesn't grow gets 1. The factor goes a tenth of the way per second, so that it never jumps.

    Which limits hold, and what holds below soft and from hard on, is as in ``limits``. From half way on the most
    that is allowed falls, and in the last tenth before hard it is the ramp of ``limits``, whatever was learned.
    The ramp is also what a volume starts with, and what those beyond the 4,096 remembered get.

    Against the ramp: at a steady demand the factor hardly moves for minutes, where the ramp's falls with every
    byte; deletions in lumps move it less. Where deletions are as even as a demand that is bursty, or lumps are
    as large as all the way from soft to hard, the ramp is the calmer one.

    This is not in proposal 035, whose policy is proportional.
    """

    depends_on_time: ClassVar = True

    class Section(BaseModel):
        """The properties under ``plugin.forecast.``."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        horizon: Duration = Field(
            default=timedelta(minutes=10),
            description="Time for which the space left must last at the growth that is allowed now.",
        )

    def __init__(self, context: Context[Section], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic."""
        super().__init__(context)
        self._clock = clock
        self._trends: OrderedDict[tuple[str, str], Trend] = OrderedDict()  # longest unseen first
        self._turn, self._applied, self._lowest = 0, 1.0, 1.0
        self.reconfigure(context.section)

    def reconfigure(self, section: Section) -> None:
        """Hold to the new horizon from the next question on; what was learned stays."""
        self._horizon = section.horizon.total_seconds()

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard, and between what the volume's growth allows."""
        bounds = self.bounds(volume)
        if bounds is None:
            return 1.0
        factor = self._next(volume, bounds)
        self._lowest = min(self._lowest, factor)
        return factor

    def _next(self, volume: Volume, bounds: Bounds) -> float:
        now, ramp = self._clock(), bounds.ramp(volume.consumed)
        self._forget(now)
        trend = self._trends.get((volume.broker, volume.name))
        if trend is None:
            self._remember(volume, now, ramp)
            return ramp
        passed = self._see(trend, now, volume)
        if 0.0 < ramp < 1.0:
            wanted = trend.wanted(bounds.hard - volume.consumed, self._horizon)
            moved = trend.move(wanted, passed) or ramp  # below hard again, and no time has passed since
            trend.factor = _whole(min(moved, _guard(ramp)))
        else:
            trend.factor = ramp
        return trend.factor

    def _see(self, trend: Trend, now: float, volume: Volume) -> float:
        if trend.turn == self._turn:  # the second question for a volume begins a new round of questions
            # The smallest factor of all volumes held for each of them; in shadow mode none did.
            self._applied = 1.0 if self._context.settings.mode == "shadow" else self._lowest
            self._turn, self._lowest = self._turn + 1, 1.0
        trend.turn = self._turn
        self._trends.move_to_end((volume.broker, volume.name))
        return trend.see(now, volume.consumed, self._applied, self._horizon)

    def _remember(self, volume: Volume, now: float, factor: float) -> None:
        if len(self._trends) < MAX_VOLUMES:
            trend = Trend(now, volume.consumed, factor, self._turn)
            self._trends[volume.broker, volume.name] = trend

    def _forget(self, now: float) -> None:
        while self._trends and now - next(iter(self._trends.values())).at > FORGET:
            self._trends.popitem(last=False)


def _whole(factor: float) -> float:
    """1 once it is as good as that: on its way it would come ever nearer and never be there."""
    return 1.0 if factor > 0.995 else factor


def _guard(ramp: float) -> float:
    """The ramp in its last tenth; in the half before hard it rises from there to 1, so that nothing jumps."""
    if ramp <= GUARDED:
        return ramp
    return min(1.0, GUARDED + (1 - GUARDED) * (ramp - GUARDED) / (GUIDED - GUARDED))


SMOOTHING: Final = 30.0  # seconds after which growth weighs 1/e: producers' bursts are shorter


MOVING: Final = 10.0  # seconds after which 1/e of the way to the factor wanted is left: it never jumps


LEAST: Final = 1e-6  # growth at factor 0, by a reassignment, must not make 0 the factor for ever


@dataclass(slots=True)
class Trend:
    """What is remembered of one volume.

    Growth and the factor under which it happened are smoothed alike, so that their quotient, the demand, stays
    right while the factor moves: no delay but that of the measurement is in the control loop.

    Attributes:
        at: when it was seen last, in seconds.
        consumed: bytes, then.
        factor: what it was given, then.
        turn: the round of questions in which that was.
        grown: bytes that it has grown by, deletions not counted, over about SMOOTHING.
        opened: seconds at factor 1 in which it did.
        deleted: bytes deleted, over about the horizon.
    """

    at: float
    consumed: int
    factor: float
    turn: int
    grown: float = 0.0
    opened: float = 0.0
    deleted: float = 0.0

    def see(self, now: float, consumed: int, applied: float, horizon: float) -> float:
        """Take a measurement, and the factor that held since the last one; answers the seconds since."""
        passed, more = max(0.0, now - self.at), consumed - self.consumed
        kept = math.exp(-passed / SMOOTHING)
        self.grown = self.grown * kept + max(0, more)
        self.opened = self.opened * kept + max(applied, LEAST) * passed
        self.deleted = self.deleted * math.exp(-passed / horizon) + max(0, -more)
        self.at, self.consumed = now, consumed
        return passed

    def wanted(self, left: int, horizon: float) -> float:
        """The factor at which it takes the horizon (seconds) to fill the bytes left and those that deletions
        free in that time, if these go on; 1 if the volume doesn't grow, or no time has passed to tell by.
        """
        if self.grown <= 0.0 or self.opened <= 0.0:
            return 1.0
        return min(1.0, (left + self.deleted) / horizon * self.opened / self.grown)

    def move(self, wanted: float, passed: float) -> float:
        """The factor after so many seconds on the way to the one wanted."""
        return wanted + (self.factor - wanted) * math.exp(-passed / MOVING)
