"""Kafka's clock, by which the pipeline judges all ages and dates all its records.

Brokers' records carry Kafka's times. If the clock of the driver's machine is wrong, all brokers would look stale, or
none ever would. One clock serves the volumes, the shares and the leadership; it is corrected with the timestamps that
Kafka gives to what the pipeline writes.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from quotahost.background import LoggedOnce

log = logging.getLogger("quotahost.pipeline")

_TOLERANCE_MS: Final = 2000  # within it the clocks agree; each new correction costs the roll-up a new plan
_WARNING_MS: Final = 10_000
#: So many records in a row must agree that the clock is off. One timestamp may be wrong: that of a partition's leader
#: whose clock is off and that leads for a moment.
WITNESSES: Final = 3


class Written(NamedTuple):
    """When a record was written, in ms since the epoch.

    Attributes:
        sent: by this machine's clock, before it was sent.
        written: Kafka's timestamp of it.
        confirmed: by this machine's clock, when Kafka's answer was here.
    """

    sent: int
    written: int
    confirmed: int


def wall_ms() -> int:
    """This machine's time in ms since the epoch."""
    return time.time_ns() // 1_000_000


class KafkaClock:
    """This machine's wall clock, corrected by the timestamps that Kafka gives to written records. Any thread may ask.

    Attributes:
        ahead: ms by which Kafka's clock is ahead of this machine's; 0 while they agree.
    """

    def __init__(self, wall: Callable[[], int] = wall_ms) -> None:
        """``wall`` returns ms since the epoch."""
        self._wall = wall
        self.ahead = 0
        self._witnesses: list[int] = []
        self._wrong = LoggedOnce(log)

    def now(self) -> int:
        """Kafka's time in ms since the epoch."""
        return self._wall() + self.ahead

    def correct(self, record: Written) -> None:
        """Take the times of a record that Kafka has just written. One thread at a time may call."""
        # Kafka wrote it at some time between the two: a slow answer doesn't shift the clock.
        least, most = record.written - record.confirmed, record.written - record.sent
        if least - _TOLERANCE_MS <= self.ahead <= most + _TOLERANCE_MS:
            self._witnesses.clear()
        else:
            self._witnesses.append((least + most) // 2)
            if len(self._witnesses) == WITNESSES:
                self._set(int(statistics.median(self._witnesses)))

    def _set(self, ahead: int) -> None:
        self._witnesses.clear()
        self.ahead = ahead if abs(ahead) > _TOLERANCE_MS else 0
        if abs(ahead) > _WARNING_MS:
            self._wrong.report(
                "this machine's clock is %.0f s off Kafka's; the pipeline goes by Kafka's", -ahead / 1000
            )
        else:
            self._wrong.healed()
