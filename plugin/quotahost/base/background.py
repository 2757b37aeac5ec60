"""These helpers start daemon threads, which never keep a broker from stopping, and limit repeated log lines."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

MINUTE: Final = 60.0  # seconds
#: Returns the time in seconds: monotonic if the variable is named ``clock``, since the epoch if it is named ``wall``.
Clock = Callable[[], float]
#: Starts a function on a daemon thread of this name and returns the thread, such as ``Context.start_thread``.
StartThread = Callable[[str, Callable[[], None]], threading.Thread]


def start_daemon(name: str, run: Callable[[], None], at_end: Callable[[], None] = lambda: None) -> threading.Thread:
    """Start ``run`` on a daemon thread ``quotahost-NAME``, which calls ``at_end`` before it ends."""

    def body() -> None:
        try:
            run()
        finally:
            at_end()

    # A daemon thread, so that a thread that doesn't end in time doesn't keep the process running.
    thread = threading.Thread(target=body, name=f"quotahost-{name}", daemon=True)
    thread.start()
    return thread


class Periodic:
    """Calls ``work`` immediately, and again one ``period`` after each call, on one daemon thread, until ``close``."""

    def __init__(
        self, name: str, work: Callable[[], None], period: Callable[[], float],
        start_thread: StartThread = start_daemon, rest: int = 0,
    ) -> None:  # fmt: skip
        """Start the thread ``quotahost-NAME``. An exception of ``work`` ends the thread.

        ``period`` is called after each ``work`` and returns the seconds until the next, which begins after ``rest``
        times the duration of this one at the earliest. A plugin passes ``Context.start_thread`` as ``start_thread``.
        """
        self._work, self._period, self._rest = work, period, rest
        self._stopped, self._wake = False, threading.Event()
        self._thread = start_thread(name, self._run)

    def wake(self) -> None:
        """Call ``work`` now instead of at the end of the period. Any thread may call."""
        self._wake.set()

    def close(self, within: float = 0.5) -> bool:
        """End the thread and return True if it ended ``within`` seconds. A thread whose work hangs is left behind."""
        self._stopped = True
        self._wake.set()
        self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped:
            began = time.monotonic()
            self._work()
            pause = max(self._period(), self._rest * (time.monotonic() - began))
            # Event.wait() raises for a longer timeout; a task with the period timedelta.max runs once.
            self._wake.wait(min(pause, threading.TIMEOUT_MAX))
            # The flag is cleared after the wait, so that a wake() during the work leads to another call.
            self._wake.clear()


class LineLimit:
    """Limits similar log lines to a few in each period, however often their cause occurs."""

    def __init__(self, lines: int = 1, clock: Clock = time.monotonic, period: float = MINUTE) -> None:
        """``lines`` is the most lines that pass in each ``period`` (seconds)."""
        self._clock, self._period = clock, period
        self._written: deque[float] = deque(maxlen=lines)
        self._left_out = 0

    def passes(self) -> bool:
        """True if the caller may write a line now. Otherwise the line is counted as left out."""
        if self.has_room():
            return True
        self.leave_out()
        return False

    def has_room(self) -> bool:
        """True if the caller may write a line now; a line that must wait is not counted as left out."""
        now = self._clock()
        if len(self._written) == self._written.maxlen and now - self._written[0] < self._period:
            return False
        self._written.append(now)
        return True

    def leave_out(self) -> None:
        """Count a line as left out."""
        self._left_out += 1

    def left_out(self) -> str:
        """The suffix for the next line, with the number of left-out lines, which is then reset; "" for none."""
        count, self._left_out = self._left_out, 0
        return f" ({count} similar lines were left out before)" if count else ""


class LoggedOnce:
    """Logs a fault when it begins, and again only after it has healed and begun again, at most once a minute."""

    def __init__(self, log: logging.Logger, level: int = logging.WARNING, clock: Clock = time.monotonic) -> None:
        self._log, self._level = log, level
        self._limit = LineLimit(clock=clock)
        self._logged: bool | None = None  # False while the limit still withholds the fault's line; None: no fault

    def report(self, text: str, *arguments: object, exc_info: Any = False) -> None:
        """Log the fault, unless it was logged since it began. The arguments are those of ``Logger.log``."""
        if self._logged:
            return
        self._logged = self._limit.has_room()
        if self._logged:
            # The record gets plain text: if a handler kept the record, an exception among the arguments would keep, by
            # its traceback, a Kafka client alive that retries its login.
            line = (text % arguments if arguments else text) + self._limit.left_out()
            # The broker's log limits the lines of each cause.
            self._log.log(self._level, "%s", line, exc_info=exc_info, extra={"cause": text})

    @contextmanager
    def caught(self, text: str, show: Callable[[Exception], object] | None = None) -> Iterator[None]:
        """Report an exception of the block and go on, for a thread that must survive; a block without one heals.

        ``show`` makes the argument of ``text`` from the exception; without it, the line has the stack trace.
        """
        try:
            yield
        except Exception as error:
            self.report(text, *([show(error)] if show else ()), exc_info=show is None)
        else:
            self.healed()

    def healed(self, text: str = "", *arguments: object) -> bool:
        """End the fault, so that the next fault is logged. If this fault was logged, log its end, and return True."""
        if self._logged is False:
            self._limit.leave_out()
        logged, self._logged = self._logged, None
        if logged and text:
            self._log.info(text, *arguments)
        return bool(logged)
