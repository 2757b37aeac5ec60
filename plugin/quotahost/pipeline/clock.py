"""The Kafka clock corrects the driver's clock with the timestamps that Kafka gives to the pipeline's records.

Brokers' records have Kafka's timestamps. If the clock of the driver's machine is wrong, all brokers look stale, or none
ever does. One :class:`KafkaClock` serves the volumes, the shares and the leadership. If an operator sets the machine's
clock while the pipeline runs, the Kafka clock is unchanged.

Each timestamp comes from one broker, whose clock may be wrong, too. So a correction is ignored if it would make all
brokers look silent, while some brokers report by the machine's own clock (:meth:`KafkaClock.heard`).
"""

import math
import statistics
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from quotahost.base.background import LoggedOnce
from quotahost.pipeline import log

#: Clocks that differ by no more than this count as equal, because each new correction restarts the queries.
TOLERANCE_MS: Final = 2000
_WARNING_MS: Final = 10_000
#: The clock is corrected only after this many records in a row differ from it. A single timestamp may be wrong: a
#: broker whose clock is wrong may lead the partition for a moment.
WITNESSES: Final = 3


class Written(NamedTuple):
    """The times of a written record, in ms since the epoch."""

    sent: int  # by this machine's clock, before the record was sent
    written: int  # Kafka's timestamp of the record
    confirmed: int  # by this machine's clock, when Kafka's answer arrived


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class KafkaClock:
    """This machine's wall clock, corrected by the timestamps that Kafka gives to written records.

    Any thread may read the clock.
    """

    def __init__(self, wall: Callable[[], int] = wall_ms, monotonic: Callable[[], int] = _monotonic_ms) -> None:
        """``wall`` returns ms since the epoch; ``monotonic`` returns ms of a clock that nobody can set."""
        self._wall, self._monotonic = wall, monotonic
        self._lock = threading.Lock()
        self._ahead, self._apart = 0, wall() - monotonic()
        self._witnesses: list[int] = []
        self._age, self._validity = math.inf, 0.0  # of the latest snapshot, in ms
        self._wrong = LoggedOnce(log)

    @property
    def ahead(self) -> int:
        """The ms by which Kafka's clock is ahead of this machine's clock; 0 while both agree."""
        with self._lock:
            apart = self._wall() - self._monotonic()
            # The machine's clock was set, but Kafka's time didn't jump: the next batch must not find all brokers stale.
            if abs(apart - self._apart) > TOLERANCE_MS:
                self._ahead -= apart - self._apart
                self._apart = apart
            return self._ahead

    def now(self) -> int:
        return self.ahead + self._wall()

    def heard(self, age: float, validity: float) -> None:
        """Take the latest snapshot's ``age`` at a batch's start by this machine's own clock; both are in ms."""
        self._age, self._validity = age, validity
        with self._lock:
            if self._hears(0) and not self._hears(self._ahead):
                self._ahead = 0  # brokers are heard by this machine's own clock only

    def _hears(self, ahead: int) -> bool:
        return -TOLERANCE_MS <= self._age + ahead <= self._validity

    def correct(self, record: Written) -> None:
        """Take the times of a record that Kafka has just written. One thread at a time may call this method."""
        # Kafka wrote the record at some time between sent and confirmed, so a slow answer doesn't shift the clock.
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
                text = "a broker's clock differs by %.0f s and is ignored: by this machine's clock snapshots are fresh"
                self._wrong.report(text, ahead / 1000)
                return
            with self._lock:
                self._ahead = ahead if abs(ahead) > TOLERANCE_MS else 0
        if abs(self._ahead) > _WARNING_MS:
            self._wrong.report(
                "this machine's clock differs by %.0f s from Kafka's; the pipeline uses Kafka's", -self._ahead / 1000
            )
        else:
            self._wrong.healed()
