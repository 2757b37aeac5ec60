"""Ticks: records of a topic of their own, by which time passes in a query while no snapshot comes.

Spark makes no batch without input. A broker that died together with all others would then never become stale. A batch
costs a good part of a second of a core, so where it would make nothing new the publisher publishes without one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from quotahost.background import LoggedOnce, Periodic

log = logging.getLogger("quotahost.pipeline")

KEY: Final = b"tick"
_CLOSE_WITHIN: Final = 5.0  # seconds


class Ticks:
    """Publishes whenever nothing was published for ``period`` seconds, if need be by a tick, which causes a batch.

    Spark's own source ``rate`` causes a batch each second at least, needed or not: half a core.
    """

    def __init__(
        self, period: float, send: Callable[[bytes, bytes], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Starts the thread. ``send`` takes key and value, and may raise; ``clock`` in seconds."""
        self._period, self._send, self._clock = period, send, clock
        #: Publishes without a batch, and returns whether it did; it may raise.
        self.without_batch: Callable[[], bool] = lambda: False
        self._last, self._hurried = clock(), threading.Event()
        self._fault = LoggedOnce(log)
        self._thread = Periodic("ticks", self._write_if_due, self._remaining)

    def published(self) -> None:
        """A record was published just now, so the next tick is due after a whole period."""
        self._last = self._clock()

    def hurry(self) -> None:
        """Write a tick at once."""
        self._hurried.set()
        self._thread.wake()

    def close(self) -> bool:
        """End the thread; whether it ended within 5 s."""
        return self._thread.close(_CLOSE_WITHIN)

    def _remaining(self) -> float:
        return max(0.0, self._last + self._period - self._clock())

    def _write_if_due(self) -> None:
        # A record may have been published while this thread slept; then the tick is due later.
        if not self._hurried.is_set() and self._remaining() > 0:
            return
        hurried = self._hurried.is_set()
        self._hurried.clear()
        # Before the attempt: if Kafka doesn't answer, the next attempt is a whole period later, and not at once.
        self._last = self._clock()
        try:
            if hurried or not self.without_batch():
                self._send(KEY, b"")
            self._fault.healed()
        except Exception as problem:  # of Java's clients, of any kind; the next tick may succeed
            self._fault.report("no tick can be written: %s", problem)
