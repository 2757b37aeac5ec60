"""Asks the cluster for its registered brokers, again and again, on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from quotahost.api import Context

_EVERY: Final = 5.0  # seconds
_AT_FIRST: Final = 0.5  # seconds, while the broker's own listener isn't open yet
_CLOSE_WITHIN: Final = 0.5


class RegisteredBrokers:
    """Tells of the registered brokers, and whether each is fenced, whenever the cluster answers."""

    def __init__(self, context: Context[object], tell: Callable[[Mapping[str, bool]], None]) -> None:
        """``tell`` is called on the new thread, with ids as strings."""
        self._context, self._tell = context, tell
        self._started = time.monotonic()
        self._stop = threading.Event()
        self._told_failure = False
        self.answered = False
        self._thread = context.start_thread(f"{context.name}-registered-brokers", self._run)

    def close(self) -> None:
        """End the thread; one that waits for an answer is left to end by itself."""
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._ask()
            self._stop.wait(_EVERY if self.answered else _AT_FIRST)

    def _ask(self) -> None:
        try:
            brokers = self._context.broker.registered()
        except Exception as problem:
            self._failed(problem)
            return
        self._tell({str(broker): fenced for broker, fenced in brokers.items()})
        self.answered, self._told_failure = True, False

    def _failed(self, problem: Exception) -> None:
        """Told once; not while the broker's own listener may not be open yet."""
        starting = time.monotonic() - self._started < self._context.settings.startup_grace.total_seconds()
        if (self.answered or not starting) and not self._told_failure:
            self._context.log.warning(
                "the cluster doesn't tell its brokers; the last known stay: %s", problem
            )
            self._told_failure = True
