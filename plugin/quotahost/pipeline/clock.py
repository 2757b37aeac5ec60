"""What time it is for Kafka: the driver's clock, corrected by the timestamps of written records.

Brokers' records carry Kafka's times. If the clock of the driver's machine is wrong, all brokers would look stale, or
none ever would. One clock serves the volumes, the shares and the leadership; it is corrected with the timestamps that
Kafka gives to what the pipeline writes. If the machine's clock is set while the pipeline runs, it goes on as before.

These timestamps are those of one broker, which may be wrong itself. So no clock is believed by which all brokers are
silent, while by the machine's own some are heard (:meth:`KafkaClock.heard`).
"""

import math
import statistics
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from quotahost.base.background import LoggedOnce
from quotahost.pipeline import log

#: Within it the clocks agree: with each new correction the queries begin again.
TOLERANCE_MS: Final = 2000
_WARNING_MS: Final = 10_000
#: So many records in a row must agree that the clock is off. One timestamp may be wrong: that of a partition's leader
#: whose clock is off and that leads for a moment.
WITNESSES: Final = 3


class Written(NamedTuple):
    """When a record was written, in ms since the epoch."""

    sent: int  # by this machine's clock, before it was sent
    written: int  # Kafka's timestamp of it
    confirmed: int  # by this machine's clock, when Kafka's answer was here


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class KafkaClock:
    """This machine's wall clock, corrected by the timestamps that Kafka gives to written records.

    Any thread may ask.
    """

    def __init__(self, wall: Callable[[], int] = wall_ms, monotonic: Callable[[], int] = _monotonic_ms) -> None:
        """``wall`` returns ms since the epoch, ``monotonic`` ms that nobody can set."""
        self._wall, self._monotonic = wall, monotonic
        self._lock = threading.Lock()
        self._ahead, self._apart = 0, wall() - monotonic()
        self._witnesses: list[int] = []
        self._age, self._validity = math.inf, 0.0  # of the newest snapshot, in ms
        self._wrong = LoggedOnce(log)

    @property
    def ahead(self) -> int:
        """By how many ms Kafka's clock is ahead of this machine's; 0 while they agree."""
        with self._lock:
            apart = self._wall() - self._monotonic()
            # The machine's clock was set, and time is the same: the next batch must not find all brokers stale.
            if abs(apart - self._apart) > TOLERANCE_MS:
                self._ahead -= apart - self._apart
                self._apart = apart
            return self._ahead

    def now(self) -> int:
        return self.ahead + self._wall()

    def heard(self, age: float, validity: float) -> None:
        """The newest snapshot was so old when a batch began, by this machine's own clock; both are in ms."""
        self._age, self._validity = age, validity
        with self._lock:
            if self._hears(0) and not self._hears(self._ahead):
                self._ahead = 0

    def _hears(self, ahead: int) -> bool:
        return -TOLERANCE_MS <= self._age + ahead <= self._validity

    def correct(self, record: Written) -> None:
        """Take the times of a record that Kafka has just written. One thread at a time may call."""
        # Kafka wrote it at some time between the two: a slow answer doesn't shift the clock.
        least, most = record.written - record.confirmed, record.written - record.sent
        if least - TOLERANCE_MS <= self.ahead <= most + TOLERANCE_MS:
            self._witnesses.clear()
        else:
            self._witnesses.append((least + most) // 2)
            if len(self._witnesses) < WITNESSES:
                return
            ahead = int(statistics.median(self._witnesses))
            self._witnesses.clear()
            if not self._ahead and self._hears(0) and not self._hears(ahead):
                text = "a broker's clock is %.0f s off this machine's, by which snapshots are new; it isn't believed"
                self._wrong.report(text, ahead / 1000)
                return
            with self._lock:
                self._ahead = ahead if abs(ahead) > TOLERANCE_MS else 0
        if abs(self._ahead) > _WARNING_MS:
            self._wrong.report(
                "this machine's clock is %.0f s off Kafka's; the pipeline goes by Kafka's", -self._ahead / 1000
            )
        else:
            self._wrong.healed()
