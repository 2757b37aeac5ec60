"""Threads that never keep a broker from stopping, periodic or not, and log lines that no fault multiplies."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

MINUTE: Final = 60.0  # seconds
#: Tells the time in seconds: monotonic where it is called ``clock``, since the epoch where it is called ``wall``.
Clock = Callable[[], float]
#: Starts a daemon thread of this name for a function and returns it; ``Context.start_thread`` is one.
StartThread = Callable[[str, Callable[[], None]], threading.Thread]


def start_daemon(name: str, run: Callable[[], None], at_end: Callable[[], None] = lambda: None) -> threading.Thread:
    """Start ``run`` on a daemon thread that is named ``quotahost-NAME``; its last act is ``at_end``."""

    def body() -> None:
        try:
            run()
        finally:
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
        """Start the thread ``quotahost-NAME``; what ``work`` raises ends it.

        ``period``: seconds until the next call, asked after each. ``start_thread`` is ``Context.start_thread`` where
        the work is a plugin's.
        """
        self._work, self._period = work, period
        self._stopped, self._wake = False, threading.Event()
        self._thread = start_thread(name, self._run)

    def wake(self) -> None:
        """Call ``work`` now instead of at the end of the period. Any thread may call."""
        self._wake.set()

    def close(self, within: float = 0.5) -> bool:
        """End the thread, and return whether it ended ``within`` seconds; if its work hangs, it is left behind."""
        self._stopped = True
        self._wake.set()
        self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped:
            self._work()
            # Python refuses to wait for longer, and a period of timedelta.max means "once".
            self._wake.wait(min(self._period(), threading.TIMEOUT_MAX))
            # Not before the wait: a wake() during the work leads to another call.
            self._wake.clear()


class LineLimit:
    """Decides which of many like log lines are written: few in each minute, however often their reason is met."""

    def __init__(self, lines: int = 1, clock: Clock = time.monotonic, period: float = MINUTE) -> None:
        """So many ``lines`` pass in each ``period``, in seconds."""
        self._clock, self._period = clock, period
        self._written: deque[float] = deque(maxlen=lines)
        self._left_out = 0

    def passes(self) -> bool:
        """Whether a line may be written now. One that may not is counted for the next that may."""
        if self.has_room():
            return True
        self.leave_out()
        return False

    def has_room(self) -> bool:
        """The same for a line that waits until it may be written."""
        now = self._clock()
        if len(self._written) == self._written.maxlen and now - self._written[0] < self._period:
            return False
        self._written.append(now)
        return True

    def leave_out(self) -> None:
        """A line that has waited is not written."""
        self._left_out += 1

    def left_out(self) -> str:
        """The end of a line that passes: how many were left out before it, if any were; they are then forgotten."""
        count, self._left_out = self._left_out, 0
        return f" ({count} such lines were left out before)" if count else ""


class LoggedOnce:
    """Logs a fault when it begins, and does so again only after the fault has healed, once a minute at most."""

    def __init__(self, log: logging.Logger, level: int = logging.WARNING, clock: Clock = time.monotonic) -> None:
        self._log, self._level = log, level
        self._limit = LineLimit(clock=clock)
        self._logged: bool | None = None  # False while its line may not be written yet; None: there is no fault

    def report(self, text: str, *arguments: object, exc_info: Any = False) -> None:
        """Log the fault, unless it was logged since it began; the arguments are those of ``Logger.log``."""
        if self._logged:
            return
        self._logged = self._limit.has_room()
        if self._logged:
            # As text: who keeps the record would keep an error, and by its traceback a client that goes on to log in.
            line = (text % arguments if arguments else text) + self._limit.left_out()
            # The broker's log limits the lines of each cause.
            self._log.log(self._level, "%s", line, exc_info=exc_info, extra={"cause": text})

    def healed(self) -> bool:
        """The fault is gone, so that the next one will be logged; returns whether this one was."""
        if self._logged is False:
            self._limit.leave_out()
        logged, self._logged = self._logged, None
        return bool(logged)
