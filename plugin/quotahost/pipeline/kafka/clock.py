"""Kafka's clock, by which the pipeline judges how old snapshots are.

Brokers' records carry Kafka's times. If the clock of the driver's machine is wrong, all brokers would look stale, or
none ever would. The publisher corrects this clock with the timestamp of every record that it writes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from quotahost.background import LoggedOnce

log = logging.getLogger("quotahost.pipeline")

_TOLERANCE_MS: Final = 2000  # a slow answer of Kafka's makes up to this much difference
_WARNING_MS: Final = 10_000


class KafkaClock:
    """This machine's wall clock, corrected by the timestamps that Kafka gives to written records."""

    def __init__(self, wall: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        """``wall`` returns ms since the epoch."""
        self._wall = wall
        self.ahead = 0  # ms by which Kafka's clock is ahead of this machine's
        self._wrong = LoggedOnce(log)

    def now(self) -> int:
        """Kafka's time in ms since the epoch."""
        return self._wall() + self.ahead

    def correct(self, written: int) -> None:
        """Take the timestamp, in ms since the epoch, of a record that Kafka has just written."""
        ahead = written - self._wall()
        # Corrected only where it matters: the answer's delay is in ``ahead``, and each new value costs a new plan.
        self.ahead = ahead if abs(ahead) > _TOLERANCE_MS else 0
        if abs(ahead) > _WARNING_MS:
            self._wrong.report(
                "this machine's clock is %.0f s off Kafka's; the pipeline goes by Kafka's", -ahead / 1000
            )
        else:
            self._wrong.healed()
