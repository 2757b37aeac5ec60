"""What Python logs and prints ends in the broker's log, bounded by package and cause, and never makes a caller wait.

A log call puts its line into a queue; one thread hands the lines to Java, where the shim logs them by SLF4J. So no
thread of a plugin is attached to the JVM by logging, and a plugin that floods the log loses lines instead of time.
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
LINES_OF_LOGGER: Final = 100  # a minute, of one package's loggers together
LINES_OF_CAUSE: Final = 20  # a minute, of these
_LINE_MAX: Final = 100_000  # characters, which are always fewer bytes than a call may have (protocol)
_PRINTED_MAX: Final = 4_000  # characters
_CAUSE_MAX: Final = 200  # characters
_END: Final = None
_NOWHERE: Final = logging.NullHandler()
_root, _own = logging.getLogger(), logging.getLogger("quotahost")
_python = logging.getLogger("quotahost.python")  # what plugins print; what C code does, Java logs so


class RateLimit:
    """Lets so many records of one package pass in a minute, and fewer of one cause; the next says how many it left out.

    The cause is the record's text before its arguments are put in; ``LoggedOnce`` puts them in itself, and names the
    cause. So whatever a plugin logs for each of 10,000 clients, or as it fails and works in turns, and however it does
    so, also by a logger for each client, the broker's log stays readable.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._loggers: dict[str, tuple[LineLimit, dict[str, LineLimit]]] = {}

    def passes(self, record: logging.LogRecord) -> bool:
        """Whether it may pass; its arguments are in its text then. Raises what a broken format string raises."""
        limits = LineLimit(LINES_OF_LOGGER, self._clock), dict[str, LineLimit]()
        of_logger, of_causes = self._loggers.setdefault(_package(record.name), limits)
        if len(of_causes) > LINES_OF_LOGGER:
            of_causes.clear()  # a plugin that puts its arguments into the text has a cause for each line
        cause = str(getattr(record, "cause", record.msg))[:_CAUSE_MAX]
        of_cause = of_causes.setdefault(cause, LineLimit(LINES_OF_CAUSE, self._clock))
        if not of_cause.passes() or not of_logger.passes():
            return False
        record.msg = record.getMessage() + of_cause.left_out() + of_logger.left_out()
        # With arguments the handler would format the finished text again, and fail at a % in it.
        record.args = None
        return True


def _package(logger: str) -> str:
    """Whose logger it is: ``quotahost.plugin.NAME``, ``quotahost.host`` and its like, or the first part of the name."""
    parts = logger.split(".")
    own = 3 if parts[:2] == ["quotahost", "plugin"] else 2
    return ".".join(parts[: own if parts[0] == "quotahost" else 1])


class Logs(logging.Handler):
    """While entered, all loggers end in the broker's log; those of quotahost in nothing else.

    A plugin's handlers on the root logger, which may fail, get no line of quotahost's. ``logging.config.dictConfig``
    takes others' handlers away and disables their loggers.
    """

    def __init__(self, shim: Shim) -> None:
        super().__init__()
        self._shim = shim
        self._lines: queue.SimpleQueue[tuple[str, int, str] | None] = queue.SimpleQueue()
        #: What no line may show: a plugin's error may quote the login.
        self.secrets: Collection[str] = ()
        self.setFormatter(EscapingFormatter("%(message)s", secrets=lambda: self.secrets))
        self._limit = RateLimit()

    def handle(self, record: logging.LogRecord) -> bool:
        """Not ``emit``, which logging calls under a lock: a plugin's text that waits must not stop all who log."""
        if self._lines.qsize() >= QUEUE_MAX:  # Java doesn't take the lines: waiting for it would stop plugins
            return False
        try:
            if not self._limit.passes(record):
                return False
            most = _PRINTED_MAX if record.name == _python.name else _LINE_MAX  # once nothing is half a secret
            text = self.format(record)[:most]
        except BaseException as problem:  # a plugin's broken format string or error must not become the host's failure
            text = f"a log line can't be made: {type(problem).__name__} at {record.pathname}:{record.lineno}"
        self._lines.put((record.name, record.levelno, text))
        return True

    def __enter__(self) -> Self:
        _root.setLevel(logging.INFO)
        self.hold()
        self._thread = start_daemon("log", self._run)
        return self

    def hold(self) -> None:
        """Undo what a plugin has done to all handlers and loggers."""
        for logger in (_root, _own):
            if self not in logger.handlers:
                logger.addHandler(self)
        _own.propagate = False
        # Neither is called in vain: both wait for a lock, which is held while a plugin's handlers are made.
        if _own.level != logging.INFO:
            _own.setLevel(logging.INFO)
        if _root.manager.disable:
            logging.disable(logging.NOTSET)
        for logger in _loggers():
            logger.disabled = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A host that failed starts again in this interpreter; with the old handler every line would come twice.
        for logger in (_root, _own):
            logger.removeHandler(self)
        _own.propagate = True
        _root.addHandler(_NOWHERE)  # or logging's last resort prints what threads log that are left behind
        self._lines.put(_END)
        # The shim waits 4 s for the whole host, and 2 s of them may go to the tasks.
        self._thread.join(timeout=1)

    def _run(self) -> None:
        while (line := self._lines.get()) is not _END:
            with suppress(Exception):  # a line that Java can't be told must not end the others
                self._shim.log(*line)


def _loggers() -> list[logging.Logger]:
    """Those of quotahost and of its plugins."""
    known = list(_root.manager.loggerDict.items())
    return [each for name, each in known if f"{name}.".startswith(f"{_own.name}.") and isinstance(each, logging.Logger)]


class _Printed(io.RawIOBase):
    name = "<the broker's log>"
    _rest = b""  # of a line that has no end yet

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
    """A file for sys.stdout or sys.stderr whose lines are logged: the file of the broker's process has no bound."""
    return io.TextIOWrapper(_Printed(), encoding="utf-8", errors="backslashreplace", line_buffering=True)
