"""This module models how Kafka measures and throttles PRODUCE, FETCH and REQUEST: a ``Rate`` over a ``SampledStat``.

A broker keeps ``quota.window.num`` samples (11) of ``quota.window.size.seconds`` (1 s) for each sensor. The rate is the
sum of the samples, divided by the time that they span. If the rate exceeds the limit, the broker mutes the client until
the rate, without new records, is back at the limit. The model follows these lines of Kafka 4.3.1:

- ``org.apache.kafka.common.metrics.stats.Rate``: ``measure`` 77-78, ``windowSize`` 83-113;
- ``org.apache.kafka.common.metrics.stats.SampledStat``: ``record`` 51-57, ``advance`` 61-70,
  ``purgeObsoleteSamples`` 127-136;
- ``org.apache.kafka.server.quota.QuotaUtils``: ``throttleTime`` 42-45.

``tests/throttling`` compares the model with those classes in a JVM. KIP-13 has another formula for the delay
(:func:`simple_delay_s`), which no version of Kafka uses.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

_LONG_MAX: Final = 2**63 - 1


class QuotaWindows(NamedTuple):
    """The windows over which a broker measures PRODUCE, FETCH and REQUEST: their number, and their size in seconds."""

    number: int
    size: int


def quota_windows(broker: Mapping[str, str]) -> QuotaWindows:
    """``quota.window.num`` and ``quota.window.size.seconds`` of the broker's own properties, or Kafka's defaults."""
    number, size = broker.get("quota.window.num") or "11", broker.get("quota.window.size.seconds") or "1"
    return QuotaWindows(int(number), int(size))


def quota_window(broker: Mapping[str, str]) -> float:
    """The longest window in seconds: (``quota.window.num`` + 1) x ``quota.window.size.seconds``.

    ``SampledStat`` keeps one more sample than ``quota.window.num`` while that sample overlaps the monitored time, and
    ``Rate.windowSize`` counts from the start of the oldest sample. Kafka mutes for (rate - limit) / limit x window, so
    a step of the limit that was computed for a shorter window would mute a client for longer than ``max.mute``.
    """
    windows = quota_windows(broker)
    return float((windows.number + 1) * windows.size)


def simple_delay_s(produced: float, bound: float, limit: float) -> float:
    """KIP-13's delay in seconds over N windows of one second: ``(produced - bound) / limit``, 0 within the bound.

    ``produced`` is the sum over all N windows, and ``bound`` is N times the limit per second. The KIP's example: 5 MB/s
    in 10 windows allow 50 MB; a client produced 60 MB; the delay is 2 s.
    """
    return max(0.0, (produced - bound) / limit)


@dataclass(slots=True)
class _Sample:
    started_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        self.started_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """The rate of one sensor: the sum of the samples in the last windows, divided by the time that they span."""

    def __init__(self, samples: int, window_ms: int) -> None:
        """The arguments are Kafka's ``MetricConfig.samples`` and ``timeWindow``, both 1 or more."""
        self._max, self._window_ms = samples, window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value to the current sample; after the end of its window, begin the next (``SampledStat.record``)."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        if now_ms - self._samples[self._current].started_ms >= self._window_ms:
            self._advance(now_ms)
        sample = self._samples[self._current]
        sample.value += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """The rate per second (``Rate.measure``)."""
        total, size_ms = self._total(now_ms)
        return total / (size_ms / 1000.0)

    def window_size_ms(self, now_ms: int) -> int:
        """The time since the oldest sample began, but at least all windows less one (``Rate.windowSize``).

        The minimum keeps the first second of a new client from deciding alone. Kafka counts a sample that overlaps the
        monitored time as a whole, so the result may be up to ``(samples + 1) * window_ms``; see ``quota_window``.
        """
        return self._total(now_ms)[1]

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """The ms without records until the rate is back at ``bound`` per second, or 0 (``QuotaUtils.throttleTime``).

        Kafka casts it to ``int`` (``ClientQuotaManager.recordAndGetThrottleTimeMs``), which overflows after 24.8 days.
        """
        total, size_ms = self._total(now_ms)
        rate = total / (size_ms / 1000.0)
        if rate <= bound:
            return 0
        return to_long(divide(rate - bound, bound) * size_ms)

    def _total(self, now_ms: int) -> tuple[float, int]:
        """The sum and ``windowSize`` after ``purgeObsoleteSamples``, in one loop, as runs make millions of calls."""
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))
        # The loop adds in Kafka's order; sum() rounds differently from Python 3.12 on.
        total, oldest_ms, obsolete_ms = 0.0, 2**63, now_ms - self._max * self._window_ms
        for sample in self._samples:
            # Kafka looks at the last record, because a sample that began before the monitored time may reach into it.
            if sample.last_ms <= obsolete_ms:
                sample.reset(now_ms)
            if sample.started_ms < oldest_ms:
                oldest_ms = sample.started_ms
            total += sample.value
        elapsed = now_ms - oldest_ms
        # Windows that have not begun yet count as windows without records.
        missing = self._max - 1 - elapsed // self._window_ms
        # If there is one sample and no time has passed, the size would be 0; Kafka then divides by 1 ms.
        return total, max(elapsed + max(missing, 0) * self._window_ms, 1)

    def _advance(self, now_ms: int) -> None:
        # Kafka keeps one sample more than configured, because the oldest may overlap the monitored time.
        self._current = (self._current + 1) % (self._max + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)


# ---- Java's arithmetic, which differs from Python's: the models return exactly Kafka's numbers ----


def divide(a: float, b: float) -> float:
    """``a / b`` of doubles, ``a`` above 0 and ``b`` at least 0; infinity if ``b`` is 0."""
    return a / b if b else math.inf


def to_long(x: float) -> int:
    """Java's ``Math.round`` of a double of at least 0: the nearest long, with halves rounded up."""
    # Java returns the largest long; Python's integers have no limit.
    if x >= _LONG_MAX:
        return _LONG_MAX
    # round() would round halves to the even neighbour.
    floor = math.floor(x)
    return floor + (x - floor >= 0.5)
