"""Kafka's ``Rate`` over a ``SampledStat``.

Kafka measures and throttles PRODUCE, FETCH and REQUEST quotas by this, with ``quota.window.num`` samples (11)
of ``quota.window.size.seconds`` (1 s). The model follows these lines of Kafka 4.3.1:

- ``org.apache.kafka.common.metrics.stats.Rate``: ``measure`` 77-78, ``windowSize`` 83-113;
- ``org.apache.kafka.common.metrics.stats.SampledStat``: ``record`` 51-57, ``advance`` 61-70,
  ``purgeObsoleteSamples`` 127-136;
- ``org.apache.kafka.server.quota.QuotaUtils``: ``throttleTime`` 42-45.

``tests/throttling`` compares it with those classes in a JVM.
"""

from __future__ import annotations

from dataclasses import dataclass

from quotahost.throttling.javamath import divide, to_int, to_long


@dataclass(slots=True)
class _Sample:
    started_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.started_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """The sum of the samples in the last windows, divided by the time that they span."""

    def __init__(self, samples: int, window_ms: int) -> None:
        """``samples`` and ``window_ms`` are Kafka's ``MetricConfig.samples`` and ``timeWindow``.

        Raises:
            ValueError: one of them is below 1.
        """
        if samples < 1 or window_ms < 1:
            raise ValueError(f"samples {samples} and window_ms {window_ms} must be 1 or more")
        self._max, self._window_ms = samples, window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """``SampledStat.record``: a sample whose window is over is followed by the next."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        if now_ms - self._samples[self._current].started_ms >= self._window_ms:
            self._advance(now_ms)
        sample = self._samples[self._current]
        sample.value += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """``Rate.measure``, per second."""
        total, size_ms = self._total(now_ms)
        return total / (size_ms / 1000.0)

    def window_size_ms(self, now_ms: int) -> int:
        """``Rate.windowSize``: the time since the oldest sample began, but at least all windows less one.

        So a new client isn't judged by its first second alone. Kafka keeps a sample that overlaps the monitored time
        whole, so the result may be as large as ``(samples + 1) * window_ms``; see ``quota_window``.
        """
        return self._total(now_ms)[1]

    def throttle_ms(self, bound: float, now_ms: int, *, cast: bool = True) -> int:
        """``QuotaUtils.throttleTime``: the time without records after which the rate is back at ``bound``.

        Args:
            bound: per second.
            now_ms: the time.
            cast: whether to cast the result to an ``int`` of 32 bits, as ``ClientQuotaManager`` does
                (``recordAndGetThrottleTimeMs``): above 24.8 days it wraps, and a negative one does not throttle.

        Returns:
            Milliseconds; 0 where the rate does not exceed the bound.
        """
        total, size_ms = self._total(now_ms)
        rate = total / (size_ms / 1000.0)
        if rate <= bound:
            return 0
        long = to_long(divide(rate - bound, bound) * size_ms)
        return to_int(long) if cast else long

    def _total(self, now_ms: int) -> tuple[float, int]:
        """``purgeObsoleteSamples``, then the sum of the samples and ``windowSize``, in one walk: runs take millions."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        # In Kafka's order, one by one: sum() rounds otherwise from Python 3.12 on.
        total, oldest_ms, obsolete_ms = 0.0, 2**63, now_ms - self._max * self._window_ms
        for sample in self._samples:
            # By the last record, as in Kafka: a sample that began before the monitored time may reach into it.
            if sample.last_ms <= obsolete_ms:
                sample.reset(now_ms)
            if sample.started_ms < oldest_ms:
                oldest_ms = sample.started_ms
            total += sample.value
        elapsed = now_ms - oldest_ms
        # Windows that have not begun yet are taken for windows without records.
        missing = self._max - 1 - elapsed // self._window_ms
        # With one sample and no time passed the length would be 0; Kafka then divides by 1 ms.
        return total, max(elapsed + max(missing, 0) * self._window_ms, 1)

    def _advance(self, now_ms: int) -> None:
        # One sample more than asked for: the oldest may overlap the monitored time.
        self._current = (self._current + 1) % (self._max + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)
