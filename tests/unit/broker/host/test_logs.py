"""Tests Python's log lines in the broker's log: no thread waits for the log, and a flood of lines is limited."""

import logging
import logging.config
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

import pytest

from quotahost.base.background import LoggedOnce
from quotahost.broker.host.logs import LINES_OF_CAUSE, LINES_OF_LOGGER, Logs, RateLimit, printed
from quotahost.broker.host.messages import encode
from quotahost.broker.host.protocol import MOST
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim

MANY = 10_000


@pytest.mark.parametrize("name", ["mine", "quotahost.plugin.mine.{}", "mine.{}"])
def test_what_a_plugin_logs_for_each_client_is_held_back_and_counted_whatever_its_loggers(name: str) -> None:
    clock = Clock()
    limit = RateLimit(clock)

    def record(logger: str, client: int = 1) -> logging.LogRecord:
        return logging.LogRecord(logger, logging.WARNING, "", 0, "client %d is unknown", (client,), None)

    assert limit.passes(record("quotahost.host"))
    passed = sum(limit.passes(record(name.format(client), client)) for client in range(MANY))
    assert passed == LINES_OF_CAUSE if name == "mine" else passed <= LINES_OF_LOGGER + LINES_OF_CAUSE
    assert limit.passes(record("quotahost.host"))
    clock.now += 60
    last = record("mine")
    assert limit.passes(last)
    more = f" ({MANY - passed} similar lines were left out before)" if name == "mine" else ""
    assert last.getMessage().startswith(f"client 1 is unknown{more}")


def test_a_noisy_fault_silences_no_other_of_its_package() -> None:
    shim, log = FakeShim(), logging.getLogger("noisy")
    with Logs(shim):
        for broker in range(MANY):
            LoggedOnce(log).report("broker %d is away", broker)
        LoggedOnce(log).report("the disk is %d%% full", 90)
        LoggedOnce(log).report("90% are used")
    assert shim.lines[LINES_OF_CAUSE - 1 :] == ["broker 19 is away", "the disk is 90% full", "90% are used"]


def test_what_is_printed_is_logged_line_by_line_and_bounded() -> None:
    shim = FakeShim()
    with Logs(shim), redirect_stdout(printed()), redirect_stderr(printed()):
        own = logging.StreamHandler()  # a plugin may add such a handler to the root logger
        logging.getLogger().addHandler(own)
        print("one", "two\n\nthree \udc80")
        sys.stderr.buffer.write("äö".encode())
        sys.stderr.flush()
        for line in range(10_000):
            print(line)
        logging.getLogger().removeHandler(own)
    assert shim.lines[:4] == ["one two", "three \\udc80", "äö", "0"]
    assert len(shim.lines) == LINES_OF_LOGGER


def fails(*_: object) -> None:
    raise RuntimeError("can't log in with S3CR3T")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_line_shows_a_secret_by_whatever_way_a_plugin_s_text_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest replaces both hooks by its own.
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    shim = FakeShim()
    with Logs(shim) as logs, redirect_stdout(printed()), redirect_stderr(printed()):
        logs.secrets = ["S3CR3T", "-----BEGIN-----\na key's own second line\n"]
        print("printed S3CR3T", file=sys.stderr)
        print("a key's own second line")
        logging.getLogger("leaky").warning("logged %s", "S3CR3T")
        type("Leaks", (), {"__del__": fails})()
        thread = threading.Thread(target=fails)
        thread.start()
        thread.join()
    assert shim.lines[:3] == ["printed ***", "***", "logged ***"]
    told = "\n".join(shim.lines)
    assert (told.count("RuntimeError: can't log in with ***"), "S3CR3T" in told) == (2, False)


class Failing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise SystemExit(record.getMessage())


@pytest.mark.parametrize(
    "harm",
    [
        lambda: logging.config.dictConfig({"version": 1, "root": {"level": "ERROR", "handlers": []}}),
        lambda: logging.basicConfig(force=True, level=logging.ERROR),
        lambda: logging.disable(logging.CRITICAL),
        lambda: logging.getLogger().addHandler(Failing()),
    ],
    ids=["dictConfig", "basicConfig", "disable", "handler"],
)
def test_no_plugin_silences_or_fails_the_hosts_log(harm: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    shim = FakeShim()
    with Logs(shim) as logs, redirect_stdout(printed()):
        harm()
        logs.hold()  # as the host does ten times a second
        logging.getLogger("quotahost.factor").info("The fence is open")
        print("printed")
    assert shim.lines == ["The fence is open", "printed"]


def test_what_a_thread_that_was_left_behind_logs_after_the_end_does_not_go_to_the_brokers_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with Logs(FakeShim()):
        pass
    logging.getLogger("quotahost.plugin.mine").error("the JVM is not running")
    assert capsys.readouterr().err == ""


def test_a_line_that_can_not_be_formatted_is_too_long_or_that_java_does_not_take_ends_no_logging() -> None:
    class Java(FakeShim):
        def log(self, logger: str, level: int, message: str) -> None:
            if message == "not now" or len(encode(["log", logger, level, message])) > MOST:
                raise ValueError(message[:20])
            super().log(logger, level, message)

    shim = Java()
    with Logs(shim) as logs:
        # The record goes to the handler itself, because pytest's own handler raises the error.
        logs.handle(logging.LogRecord("plugin", logging.WARNING, "mine.py", 7, "%d clients", ("many",), None))
        for line in ("é" * 2_000_000, "not now", "seen"):
            logging.getLogger("plugin").warning(line)
    assert shim.lines[0] == "a log line can't be made: TypeError at mine.py:7"
    assert [(line[:3], len(line)) for line in shim.lines[1:]] == [("ééé", 100_000), ("see", 4)]
