"""Sums up a factor over time."""

from __future__ import annotations

from quotahost.model import Factor, State
from quotahost.replay.values import Held


class Tally:
    """How long a factor was in which state, so far."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(State, 0.0)
        self._lowest = 1.0
        self._first_pause: float | None = None
        self._pauses, self._last = 0, State.OPEN

    def add(self, at: float, factor: float, seconds: float) -> None:
        """The factor was this from then on, in seconds since 1970, for so many seconds."""
        state = Factor(factor).state
        self._seconds[state] += seconds
        self._lowest = min(self._lowest, factor)
        if state is State.PAUSE and self._last is not State.PAUSE:
            self._pauses += 1
            self._first_pause = at if self._first_pause is None else self._first_pause
        self._last = state

    @property
    def held(self) -> Held:
        """The sum."""
        times = self._seconds
        return Held(
            times[State.OPEN], times[State.THROTTLE], times[State.PAUSE], self._lowest, self._first_pause, self._pauses
        )
