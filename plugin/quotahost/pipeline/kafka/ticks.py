"""Silence is news: without input Spark makes no batch, and a dead broker would stay alive for ever."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("quotahost.pipeline")

_CLOSE_WITHIN: Final = 5.0  # seconds
KEY: Final = b"tick"


class Ticks:
    """Writes a record whenever nothing has been published for ``period`` seconds; that makes a batch.

    Spark's own ``rate`` source makes a batch each second at least, needed or not: half a core.
    """

    def __init__(
        self,
        period: float,
        send: Callable[[bytes, bytes], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins at once; ``send`` may raise."""
        self._period, self._send, self._clock = period, send, clock
        self._last = clock()
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="quotahost-ticks", daemon=True)
        self._thread.start()

    def published(self) -> None:
        """Something has just been published."""
        self._last = self._clock()

    def hurry(self) -> None:
        """Write one at once."""
        self._hurry.set()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._hurry.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        told = False
        while not self._stop.is_set():
            hurried = self._hurry.wait(max(0.0, self._last + self._period - self._clock()))
            if self._stop.is_set() or (not hurried and self._clock() - self._last < self._period):
                continue
            self._hurry.clear()
            self._last = self._clock()
            try:
                self._send(KEY, b"")
                told = False
            except Exception as problem:
                if not told:
                    log.warning("no tick can be written: %s", problem)
                told = True
