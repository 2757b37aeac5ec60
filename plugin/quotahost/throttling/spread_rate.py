"""What the two rates of KIP-599 share: a mutation is spread over past windows, so that the rate falls steadily.

Private to ``quotahost.throttling``. The sum over S windows of W seconds makes the rate R, and a client waits
``(R - Q) / Q x S x W``. The forms differ in how a mutation is spread, and in whether R may be Q.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class SpreadRate(ABC):
    """The windows of one client."""

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` is Q per second, ``samples`` is S, and ``window_ms`` is W.

        Raises:
            ValueError: one of them is not above 0.
        """
        # `not quota > 0` refuses NaN, too.
        if not quota > 0 or samples < 1 or window_ms < 1:
            raise ValueError("quota, samples and window_ms must be above 0")
        self._quota, self._samples, self._window_ms = quota, samples, window_ms
        self._span_s = samples * window_ms / 1000.0
        self._held = [0.0] * samples  # the oldest first, the present one last
        self._index = 0

    def windows(self, now_ms: int) -> tuple[float, ...]:
        """The contents of each window, the oldest first."""
        self._pass_windows(now_ms)
        return tuple(self._held)

    def measure(self, now_ms: int) -> float:
        """R, per second."""
        self._pass_windows(now_ms)
        return sum(self._held) / self._span_s

    def admit(self, n: float, now_ms: int) -> bool:
        """Record N iff R allows it. N itself doesn't count: as many as a request asks for."""
        if not self._allows(self.measure(now_ms)):
            return False
        self.record(n, now_ms)
        return True

    def throttle_s(self, now_ms: int) -> float:
        """``(R - Q) / Q x S x W`` in seconds, 0 if R <= Q."""
        return max(0.0, (self.measure(now_ms) - self._quota) / self._quota * self._span_s)

    @abstractmethod
    def record(self, n: float, now_ms: int) -> None:
        """Spread N over the windows, whatever R is."""

    @abstractmethod
    def _allows(self, rate: float) -> bool:
        """Whether a mutation is admitted at this R."""

    def _pass_windows(self, now_ms: int) -> None:
        index = now_ms // self._window_ms
        # At most all of them: the first call comes from time 0 to now, and a silent client may skip any number.
        passed = max(0, min(index - self._index, self._samples))
        self._held = self._held[passed:] + [0.0] * passed
        self._index = index
