"""A producer whose recovery can be measured, and functions that show how evenly a producer got its rate."""

import time
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final

from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad

_BEHIND: Final = 0.05  # seconds of delay that a paced producer makes up for
_STEP: Final = 0.1  # seconds


class PacedProducer(ProducerLoad):
    """Offers the same rate all the time: after a stop it continues at its rate, while ProducerLoad would catch up."""

    def __init__(self, config: Mapping[str, Any], topic: str, rate: float, record_size: int = 10_000) -> None:
        """Like ProducerLoad; ``rate`` is in bytes/s."""
        super().__init__(config, topic, record_size, rate)
        self._apart: Final = record_size / rate
        self._due = 0.0

    def _is_ahead(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return True
        self._due = max(self._due, now - _BEHIND) + self._apart
        return False


def means(meter: Meter, start: float, end: float, length: float) -> list[float]:
    """Returns the mean bytes/s of each period of ``length`` seconds between two moments."""
    starts = [start + n * length for n in range(int((end - start) / length))]
    return [meter.rate(begin, begin + length) for begin in starts]


def longest_silence(meter: Meter, start: float, end: float) -> float:
    """Returns the longest time in seconds, between two moments, in which the meter counted nothing; to a tenth."""
    silences = groupby(rate == 0 for rate in means(meter, start, end, _STEP))
    return max((len(list(group)) * _STEP for silent, group in silences if silent), default=0.0)


def first_byte(meter: Meter, free: float, end: float) -> float:
    """Returns the moment of the first byte after the release, or the end."""
    steps = (free + n * meter.RESOLUTION for n in range(int((end - free) / meter.RESOLUTION)))
    return next((step for step in steps if meter.total_at(step + meter.RESOLUTION) > meter.total_at(free)), end)
