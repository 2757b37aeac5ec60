"""A thread that does one thing again and again, and a log line that is written once until the fault heals.

The host, the plugins and the pipeline run a dozen such loops. Each has to end promptly, to survive an exception of
its own work, and to write a lasting fault to the log once and not at every turn; this module does that in one place.
Private; it imports nothing else of quotahost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

#: Starts a daemon thread of this name for a function and returns it; ``Context.start_thread`` is one.
StartThread = Callable[[str, Callable[[], None]], threading.Thread]


def start_daemon(name: str, run: Callable[[], None], at_end: Callable[[], None] = lambda: None) -> threading.Thread:
    """Start ``run`` on a daemon thread that is named ``quotahost-NAME``; its last act is ``at_end``."""

    def body() -> None:
        try:
            run()
        finally:
            # Also after an exception: by this call a thread that asked the broker leaves the JVM.
            at_end()

    # A thread that doesn't end in time is left behind; as a daemon it doesn't keep the process.
    thread = threading.Thread(target=body, name=f"quotahost-{name}", daemon=True)
    thread.start()
    return thread


class Periodic:
    """Calls ``work`` at once, then after every ``period``, on one daemon thread, until ``close``."""

    def __init__(
        self, name: str, work: Callable[[], None], period: Callable[[], float], start_thread: StartThread = start_daemon
    ) -> None:
        """Start the thread.

        Args:
            name: the thread is named ``quotahost-NAME``.
            work: must not raise: what it raises ends the thread.
            period: seconds until the next call; asked after each, so that it may change while it runs.
            start_thread: ``Context.start_thread`` where the work asks the broker.
        """
        self._work, self._period = work, period
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread = start_thread(name, self._run)

    @property
    def closing(self) -> bool:
        """Whether ``close`` was called. Long work checks it in order to end early."""
        return self._stop.is_set()

    def wake(self) -> None:
        """Call ``work`` now instead of at the end of the period. Any thread may call."""
        self._wake.set()

    def close(self, within: float = 0.5) -> bool:
        """End the thread, and return whether it ended ``within`` seconds; if its work hangs, it is left behind."""
        self._stop.set()
        self._wake.set()
        # The work itself may call close(), and no thread can join itself.
        if self._thread is not threading.current_thread():
            self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            # Cleared before the work, so that a wake() during the work leads to another call.
            self._wake.clear()
            self._work()
            # clear() may have undone the wake of a close() that came right before it.
            if not self._stop.is_set():
                self._wake.wait(self._period())


class LoggedOnce:
    """Logs a fault when it begins, and does so again only after the fault has healed."""

    def __init__(self, log: logging.Logger, level: int = logging.WARNING) -> None:
        """No fault yet."""
        self._log, self._level = log, level
        self._logged = False

    def report(self, text: str, *arguments: object, exc_info: bool = False) -> None:
        """Log the fault, unless it was logged since it began. The arguments are those of ``Logger.log``."""
        if not self._logged:
            self._log.log(self._level, text, *arguments, exc_info=exc_info)
        self._logged = True

    def healed(self) -> None:
        """The fault is gone, so that the next one will be logged."""
        self._logged = False
