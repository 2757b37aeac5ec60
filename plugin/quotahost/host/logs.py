"""Python's logging in the broker's own log, by logger name and level, without ever making a caller wait."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import defaultdict
from types import TracebackType
from typing import Final

from quotahost.host.shim import Shim

QUEUE_MAX: Final = 10_000
LINES_PER_WINDOW: Final = 100
WINDOW: Final = 10.0  # seconds
_END: Final = None


class RateLimit(logging.Filter):
    """At most so many records of one logger in a window; the next one tells how many were held back."""

    def __init__(self, lines: int = LINES_PER_WINDOW, window: float = WINDOW) -> None:
        super().__init__()
        self._lines, self._window = lines, window
        self._opened: dict[str, float] = defaultdict(lambda: -window)
        self._count: dict[str, int] = defaultdict(int)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record passes; the first of a window may say how many were held back."""
        name, now = record.name, time.monotonic()
        if now - self._opened[name] >= self._window:
            held = max(0, self._count[name] - self._lines)
            self._opened[name], self._count[name] = now, 0
            if held:
                record.msg = f"{record.getMessage()} ({held} records of this logger were held back before)"
                record.args = None
        self._count[name] += 1
        return self._count[name] <= self._lines


class _ToQueue(logging.Handler):
    def __init__(self, lines: queue.Queue[tuple[str, int, str] | None]) -> None:
        super().__init__()
        self._lines = lines
        self.setFormatter(logging.Formatter("%(message)s"))
        self.addFilter(RateLimit())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait((record.name, record.levelno, self.format(record)))
        except queue.Full:
            pass
        except Exception:  # a plugin's broken format string must not become the host's failure
            self.handleError(record)


class Logs:
    """While entered, the root logger ends in the broker's log.

    One thread hands the lines to Java: so no thread of a plugin is ever attached to the JVM by logging.
    """

    def __init__(self, shim: Shim) -> None:
        self._shim = shim
        self._lines: queue.Queue[tuple[str, int, str] | None] = queue.Queue(QUEUE_MAX)
        self._handler = _ToQueue(self._lines)
        self._thread = threading.Thread(target=self._run, name="quotahost-log", daemon=True)

    def __enter__(self) -> Logs:
        root = logging.getLogger()
        root.addHandler(self._handler)
        root.setLevel(logging.INFO)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self._handler)
        self._lines.put(_END)
        self._thread.join(timeout=1)

    def _run(self) -> None:
        while (line := self._lines.get()) is not _END:
            self._shim.log(*line)
        self._shim.detach()
