"""``Logs`` sends what Python logs and prints to the broker's log, limits it by package and cause, and blocks no caller.

A log call puts its line into a queue. One thread passes the lines to Java, where the shim logs them through SLF4J. So
logging attaches no thread of a plugin to the JVM, and a plugin that floods the log loses lines instead of time.
"""

import io
import logging
import queue
import time
from collections.abc import Collection
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from quotahost.base.background import Clock, LineLimit, start_daemon
from quotahost.base.text import EscapingFormatter
from quotahost.broker.host.protocol import Shim

QUEUE_MAX: Final = 10_000  # lines
LINES_OF_LOGGER: Final = 100  # a minute, from all loggers of one package
LINES_OF_CAUSE: Final = 20  # a minute, from one package with one cause
_LINE_MAX: Final = 100_000  # characters; their bytes always fit in a call (``protocol.MOST``)
_PRINTED_MAX: Final = 4_000  # characters
_CAUSE_MAX: Final = 200  # characters
_END: Final = None
_NOWHERE: Final = logging.NullHandler()
_root, _own = logging.getLogger(), logging.getLogger("quotahost")
_python = logging.getLogger("quotahost.python")  # what plugins print; under this name Java logs what C code prints


class RateLimit:
    """Limits the records of one package, and of one cause, in a minute. The next record says how many were left out.

    The cause is the record's text before its arguments are put in. ``LoggedOnce`` puts the arguments in itself, and
    names the cause. So the broker's log stays readable if a plugin logs a line for each of 10,000 clients, even with a
    logger for each client, or if it fails and works by turns.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._loggers: dict[str, tuple[LineLimit, dict[str, LineLimit]]] = {}

    def passes(self, record: logging.LogRecord) -> bool:
        """Whether the record may pass. If so, puts its arguments into its text. A broken format string raises."""
        limits = LineLimit(LINES_OF_LOGGER, self._clock), dict[str, LineLimit]()
        of_logger, of_causes = self._loggers.setdefault(_package(record.name), limits)
        if len(of_causes) > LINES_OF_LOGGER:
            of_causes.clear()  # if a plugin puts its arguments into the text, each line has its own cause
        cause = str(getattr(record, "cause", record.msg))[:_CAUSE_MAX]
        of_cause = of_causes.setdefault(cause, LineLimit(LINES_OF_CAUSE, self._clock))
        if not of_cause.passes() or not of_logger.passes():
            return False
        record.msg = record.getMessage() + of_cause.left_out() + of_logger.left_out()
        # If there were arguments, the handler would format the finished text again, and fail at a % in it.
        record.args = None
        return True


def _package(logger: str) -> str:
    """A logger's package: ``quotahost.plugin.NAME``, ``quotahost.host`` and the like, or the first part of the name."""
    parts = logger.split(".")
    own = 3 if parts[:2] == ["quotahost", "plugin"] else 2
    return ".".join(parts[: own if parts[0] == "quotahost" else 1])


class Logs(logging.Handler):
    """While it is entered, all loggers write to the broker's log, and quotahost's loggers write nowhere else.

    A plugin's handlers on the root logger may fail, so they get no line of quotahost's. If a plugin calls
    ``logging.config.dictConfig``, Python removes the handlers of others and disables their loggers (``hold``).
    """

    def __init__(self, shim: Shim) -> None:
        super().__init__()
        self._shim = shim
        self._lines: queue.SimpleQueue[tuple[str, int, str] | None] = queue.SimpleQueue()
        #: Texts that no line may show: a plugin's error may quote a password.
        self.secrets: Collection[str] = ()
        self.setFormatter(EscapingFormatter("%(message)s", secrets=lambda: self.secrets))
        self._limit = RateLimit()

    def handle(self, record: logging.LogRecord) -> bool:
        """Takes no lock, unlike ``logging.Handler``: if a plugin's ``__str__`` blocks, other threads must still log."""
        if self._lines.qsize() >= QUEUE_MAX:  # Java takes no lines: drop this one, because waiting would stop plugins
            return False
        try:
            if not self._limit.passes(record):
                return False
            most = _PRINTED_MAX if record.name == _python.name else _LINE_MAX  # cut after secrets are removed
            text = self.format(record)[:most]
        except BaseException as problem:  # a plugin's broken format string or __str__ must not make the host fail
            text = f"a log line can't be made: {type(problem).__name__} at {record.pathname}:{record.lineno}"
        self._lines.put((record.name, record.levelno, text))
        return True

    def __enter__(self) -> Self:
        _root.setLevel(logging.INFO)
        self.hold()
        self._thread = start_daemon("log", self._run)
        return self

    def hold(self) -> None:
        """Undo a plugin's changes of handlers and loggers."""
        for logger in (_root, _own):
            if self not in logger.handlers:
                logger.addHandler(self)
        _own.propagate = False
        # Both calls wait for a lock that a plugin may hold while it creates handlers, so make them only if needed.
        if _own.level != logging.INFO:
            _own.setLevel(logging.INFO)
        if _root.manager.disable:
            logging.disable(logging.NOTSET)
        for logger in _loggers():
            logger.disabled = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A host that failed starts again in this interpreter. If the old handler stayed, each line would come twice.
        for logger in (_root, _own):
            logger.removeHandler(self)
        _own.propagate = True
        _root.addHandler(_NOWHERE)  # else logging.lastResort would print what remaining threads log
        self._lines.put(_END)
        # The shim waits 4 s for the whole host, and the tasks may take 2 s of them.
        self._thread.join(timeout=1)

    def _run(self) -> None:
        while (line := self._lines.get()) is not _END:
            with suppress(Exception):  # a line that can't be sent to Java must not stop the following lines
                self._shim.log(*line)


def _loggers() -> list[logging.Logger]:
    """The loggers of quotahost and of its plugins."""
    every = list(_root.manager.loggerDict.items())
    return [each for name, each in every if f"{name}.".startswith(f"{_own.name}.") and isinstance(each, logging.Logger)]


class _Printed(io.RawIOBase):
    name = "<the broker's log>"
    _rest = b""  # the beginning of a line that has no end yet

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        *ended, rest = (self._rest + bytes(data)).split(b"\n")
        self._rest = rest[:_LINE_MAX]
        self._log(b"\n".join(ended))
        return len(data)

    def flush(self) -> None:
        rest, self._rest = self._rest, b""
        self._log(rest)

    def _log(self, lines: bytes) -> None:
        for line in filter(str.strip, lines.decode("utf-8", "replace").splitlines()):
            _python.info(line)


def printed() -> io.TextIOWrapper:
    """A file for sys.stdout or sys.stderr that logs its lines, because the broker's own output file has no limit."""
    return io.TextIOWrapper(_Printed(), encoding="utf-8", errors="backslashreplace", line_buffering=True)
