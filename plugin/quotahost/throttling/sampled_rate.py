"""How Kafka measures and throttles PRODUCE, FETCH and REQUEST quotas: a ``Rate`` over a ``SampledStat``.

A broker keeps ``quota.window.num`` samples (11) of ``quota.window.size.seconds`` (1 s) for each sensor. The rate is
their sum over the time that they span. Above the limit the client is muted for as long as it takes, without records,
until the rate is back at the limit. The model follows these lines of Kafka 4.3.1:

- ``org.apache.kafka.common.metrics.stats.Rate``: ``measure`` 77-78, ``windowSize`` 83-113;
- ``org.apache.kafka.common.metrics.stats.SampledStat``: ``record`` 51-57, ``advance`` 61-70,
  ``purgeObsoleteSamples`` 127-136;
- ``org.apache.kafka.server.quota.QuotaUtils``: ``throttleTime`` 42-45.

``tests/throttling`` compares it with those classes in a JVM. KIP-13 has another formula for the delay
(:func:`simple_delay_s`), which no Kafka uses.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

_LONG_MAX: Final = 2**63 - 1


class QuotaWindows(NamedTuple):
    """Over which windows a broker measures PRODUCE, FETCH and REQUEST: how many, and of how many seconds each."""

    number: int
    size: int


def quota_windows(broker: Mapping[str, str]) -> QuotaWindows:
    """``quota.window.num`` and ``quota.window.size.seconds`` of the broker's own properties, or Kafka's defaults."""
    number, size = broker.get("quota.window.num") or "11", broker.get("quota.window.size.seconds") or "1"
    return QuotaWindows(int(number), int(size))


def quota_window(broker: Mapping[str, str]) -> float:
    """The longest window in seconds: (``quota.window.num`` + 1) x ``quota.window.size.seconds``.

    ``SampledStat`` keeps one sample more than ``quota.window.num`` as long as it overlaps the monitored time, and
    ``Rate.windowSize`` counts from the start of the oldest sample. Kafka mutes for (rate - limit) / limit x window, so
    a step of the limit that was computed for a shorter window would mute for longer than ``max.mute``.
    """
    windows = quota_windows(broker)
    return float((windows.number + 1) * windows.size)


def simple_delay_s(produced: float, bound: float, limit: float) -> float:
    """KIP-13's delay in seconds over N windows of one second: ``(produced - bound) / limit``, 0 within the bound.

    ``produced`` is the sum over all N windows, ``bound`` what they allow, N times the limit per second. The KIP's
    example: 5 MB/s in 10 windows allow 50 MB; 60 MB were produced; the delay is 2 s.
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
    """The sum of the samples in the last windows, divided by the time that they span."""

    def __init__(self, samples: int, window_ms: int) -> None:
        """Kafka's ``MetricConfig.samples`` and ``timeWindow``, both 1 or more."""
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

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """``QuotaUtils.throttleTime``: ms without records after which the rate is back at ``bound`` per second, or 0.

        Kafka makes an ``int`` of it (``ClientQuotaManager.recordAndGetThrottleTimeMs``): above 24.8 days it wraps.
        """
        total, size_ms = self._total(now_ms)
        rate = total / (size_ms / 1000.0)
        if rate <= bound:
            return 0
        return to_long(divide(rate - bound, bound) * size_ms)

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


# ---- Java's arithmetic where it differs from Python's, so that the models give Kafka's very numbers ----


def divide(a: float, b: float) -> float:
    """``a / b`` of doubles, ``a`` above 0 and ``b`` not below: by 0 it is infinite."""
    return a / b if b else math.inf


def to_long(x: float) -> int:
    """``Math.round`` of a double from 0 on: the nearest long, halves upwards."""
    # Java gives the nearest long where Python's integers would grow.
    if x >= _LONG_MAX:
        return _LONG_MAX
    # Not by round(), which takes halves to the even neighbour.
    floor = math.floor(x)
    return floor + (x - floor >= 0.5)
