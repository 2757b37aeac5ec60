"""KIP-599's rate form, as version 15 of its page describes it: a burst is spread into past windows.

No class of Kafka has this form: Kafka implements the other one (:mod:`quotahost.throttling.token_bucket`).
``quotahost simulate`` shows both side by side. The sum over S windows of W seconds makes the rate R; a mutation is
admitted iff R <= Q. An admitted mutation fills the past windows up to Q each, and the rest goes to the present one. So
the rate falls window by window, instead of staying until one large sample is dropped.

Its weakness: this form forgets a present window after S windows, however far it exceeded Q, where the token bucket
keeps the debt. So in the long run it lets more than Q pass, by up to ``Q x S x W`` and one request for every S windows.
"""

from __future__ import annotations


class BurstRate:
    """The windows of one client, aligned to multiples of their size."""

    def __init__(self, quota: float, samples: int, window_ms: int) -> None:
        """``quota`` is Q per second, ``samples`` is S, and ``window_ms`` is W.

        Raises:
            ValueError: one of them is not above 0.
        """
        # `not quota > 0` refuses NaN, too.
        if not quota > 0 or samples < 1 or window_ms < 1:
            raise ValueError("quota, samples and window_ms must be above 0")
        self._quota, self._window_ms = quota, window_ms
        self._span_s = samples * window_ms / 1000.0
        self._windows = [0.0] * samples  # the oldest first, the present one last
        self._index = 0

    def windows(self, now_ms: int) -> tuple[float, ...]:
        """The contents of each window, the oldest first."""
        index = now_ms // self._window_ms
        # At most all of them: the first call comes from time 0 to now, and a silent client may skip any number.
        passed = max(0, min(index - self._index, len(self._windows)))
        self._windows = self._windows[passed:] + [0.0] * passed
        self._index = index
        return tuple(self._windows)

    def measure(self, now_ms: int) -> float:
        """R, per second."""
        return sum(self.windows(now_ms)) / self._span_s

    def record(self, n: float, now_ms: int) -> None:
        """Spread N over the windows.

        The KIP doesn't define which window is filled first. Here it is the oldest, so that a small N is forgotten as
        soon as the token bucket would have grown it back.
        """
        self.windows(now_ms)
        full = self._quota * self._window_ms / 1000.0
        for i, filled in enumerate(self._windows[:-1]):
            # A past window may be more than full: it took the rest of a burst while it was the present one.
            part = min(n, max(0.0, full - filled))
            self._windows[i] += part
            n -= part
        self._windows[-1] += n

    def admit(self, n: float, now_ms: int) -> bool:
        """Spread N iff R <= Q."""
        if self.measure(now_ms) > self._quota:
            return False
        self.record(n, now_ms)
        return True

    def throttle_s(self, now_ms: int) -> float:
        """``(R - Q) / Q x S x W`` in seconds, 0 if R <= Q."""
        return max(0.0, (self.measure(now_ms) - self._quota) / self._quota * self._span_s)
