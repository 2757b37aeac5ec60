"""Python's logging ends in the broker's own log, by logger name and level, and never makes a caller wait.

A log call puts its line into a queue; one thread hands the lines to Java, where the shim logs them by SLF4J. So no
thread of a plugin is attached to the JVM by logging, and a plugin that floods the log loses lines instead of time.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import defaultdict
from contextlib import suppress
from types import TracebackType
from typing import Final

from quotahost.background import start_daemon
from quotahost.host.shim import Shim

QUEUE_MAX: Final = 10_000  # lines
LINES_PER_WINDOW: Final = 100  # of one logger
WINDOW: Final = 10.0  # seconds
_END: Final = None


class RateLimit(logging.Filter):
    """Lets LINES_PER_WINDOW records of one logger pass in a WINDOW; the next record says how many were held back."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: dict[str, float] = defaultdict(lambda: -WINDOW)
        self._count: dict[str, int] = defaultdict(int)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record passes."""
        name, now = record.name, time.monotonic()
        if now - self._opened[name] >= WINDOW:
            held = max(0, self._count[name] - LINES_PER_WINDOW)
            self._opened[name], self._count[name] = now, 0
            if held:
                record.msg = f"{record.getMessage()} ({held} records of this logger were held back before)"
                # With arguments the handler would format the finished text again, and fail at a % in it.
                record.args = None
        self._count[name] += 1
        return self._count[name] <= LINES_PER_WINDOW


class _ToQueue(logging.Handler):
    def __init__(self, lines: queue.Queue[tuple[str, int, str] | None]) -> None:
        super().__init__()
        self._lines = lines
        self.setFormatter(logging.Formatter("%(message)s"))
        # On the handler, since a logger's filter doesn't see the records of its child loggers.
        self.addFilter(RateLimit())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait((record.name, record.levelno, self.format(record)))
        except queue.Full:  # Java doesn't take the lines: waiting for it would stop plugins
            pass
        except Exception:  # a plugin's broken format string must not become the host's failure
            self.handleError(record)


class Logs:
    """While entered, the root logger ends in the broker's log."""

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._lines: queue.Queue[tuple[str, int, str] | None] = queue.Queue(QUEUE_MAX)
        self._handler = _ToQueue(self._lines)

    def __enter__(self) -> Logs:
        root = logging.getLogger()
        root.addHandler(self._handler)
        root.setLevel(logging.INFO)
        self._thread = start_daemon("log", self._run, self._shim.detach)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A host that failed starts again in this interpreter; with the old handler every line would come twice.
        logging.getLogger().removeHandler(self._handler)
        self._end()
        # The shim waits 4 s for the whole host, and 2 s of them may go to the tasks.
        self._thread.join(timeout=1)

    def _end(self) -> None:
        """Queue the end mark, in the place of the oldest line if there is no room: Java may take no line any more."""
        while True:
            try:
                self._lines.put_nowait(_END)
                return
            except queue.Full:
                with suppress(queue.Empty):
                    self._lines.get_nowait()

    def _run(self) -> None:
        while (line := self._lines.get()) is not _END:
            self._shim.log(*line)
