"""Kafka's sampled rate once more, lean enough for millions of requests.

``quotahost.throttling.SampledRate`` follows Kafka line by line and walks its samples four times for each request. This
one walks them once; ``tests/unit/simulation/test_rate.py`` holds both equal.
"""

from __future__ import annotations


class LeanRate:
    """A ``SampledRate`` that is recorded and measured in one call, of whole bytes.

    Attributes:
        total: the bytes in all windows after the last record.
        span: the time in ms that they count for.
    """

    def __init__(self, windows: int, window_ms: int) -> None:
        """``quota.window.num``, and ``quota.window.size.seconds`` in ms."""
        self._windows, self._window_ms = windows, window_ms
        self._span_ms = windows * window_ms
        self._samples: list[list[int]] = []  # when it began and was recorded to last, in ms, and its bytes
        self._at = 0
        self.total, self.span = 0, 1

    def record(self, size: int, bound: float, now_ms: int) -> int:
        """Record so many bytes; for how many ms Kafka mutes the client then, held to ``bound`` bytes/s."""
        samples = self._samples
        if not samples:
            samples.append([now_ms, now_ms, 0])
        sample = samples[self._at]
        if now_ms - sample[0] >= self._window_ms:
            self._at = (self._at + 1) % (self._windows + 1)
            if self._at == len(samples):
                samples.append([now_ms, now_ms, 0])
            sample = samples[self._at]
            sample[:] = now_ms, now_ms, 0
        sample[1] = now_ms
        sample[2] += size
        return self._mute(bound, now_ms)

    def _mute(self, bound: float, now_ms: int) -> int:
        total, oldest, obsolete = 0, now_ms, now_ms - self._span_ms
        for sample in self._samples:
            if sample[1] <= obsolete:
                sample[:] = now_ms, now_ms, 0
            elif sample[0] < oldest:
                oldest = sample[0]
            total += sample[2]
        elapsed = now_ms - oldest
        missing = self._windows - 1 - elapsed // self._window_ms
        span = max(elapsed + max(missing, 0) * self._window_ms, 1)
        self.total, self.span = total, span
        rate = total / (span / 1000.0)
        if rate <= bound:
            return 0
        mute = (rate - bound) / bound * span
        whole = int(mute)
        return whole + (mute - whole >= 0.5)  # as Java rounds, and not as round() does
