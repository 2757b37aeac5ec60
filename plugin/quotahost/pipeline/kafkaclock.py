"""Kafka's clock: by a wrong one of the driver's machine all brokers would look stale, or none."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("quotahost.pipeline")

_ALIKE_MS: Final = 2000  # what a slow answer can make of it
_TOLD_MS: Final = 10_000


class KafkaClock:
    """This machine's wall clock, put right by the times that Kafka gives to what is written."""

    def __init__(self, wall: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        """``wall`` in ms since the epoch."""
        self._wall = wall
        self.ahead = 0  # ms
        self._told = False

    def now(self) -> int:
        """Ms since the epoch."""
        return self._wall() + self.ahead

    def correct(self, written: int) -> None:
        """A record has just been written, at this time of Kafka's, in ms since the epoch."""
        ahead = written - self._wall()
        self.ahead = ahead if abs(ahead) > _ALIKE_MS else 0
        if abs(ahead) > _TOLD_MS and not self._told:
            log.warning("this machine's clock is %.0f s off Kafka's; Kafka's counts", -ahead / 1000)
        self._told = abs(ahead) > _TOLD_MS
