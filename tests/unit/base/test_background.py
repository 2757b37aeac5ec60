"""Tests threads that repeat one call, and faults that are logged once."""

import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from quotahost.base.background import LoggedOnce, Periodic
from tests.fakes.plugin_context import WITHIN, Clock


def test_close_does_not_wait_for_work_that_hangs() -> None:
    hang, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        hang.wait()

    periodic = Periodic("test", work, lambda: 3600)
    assert begun.wait(WITHIN)
    assert not periodic.close(within=0.01)
    hang.set()
    assert periodic.close(within=WITHIN)


def test_work_that_takes_long_comes_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pauses, durations = Clock(0.0), list[float](), iter((0.1, 6.0))
    monkeypatch.setattr("quotahost.base.background.time", SimpleNamespace(monotonic=clock))

    def work() -> None:
        clock.now += next(durations)

    def wait(pause: float) -> None:
        pauses.append(pause)
        periodic._stopped = len(pauses) == 2

    runs: list[Callable[[], None]] = []
    start = Mock(side_effect=lambda _, run: runs.append(run))
    periodic = Periodic("test", work, lambda: 1.0, start, rest=9)
    monkeypatch.setattr(periodic, "_wake", SimpleNamespace(wait=wait, clear=lambda: None))
    runs[0]()
    assert pauses == [1.0, pytest.approx(54.0)]


def test_a_fault_that_comes_and_goes_or_lasts_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(0.0)
    flutters, lasts = (LoggedOnce(logging.getLogger("test"), clock=clock) for _ in range(2))
    for _ in range(3):
        lasts.report("first")
    assert lasts.healed()
    for _ in range(3):
        lasts.report("second")
    for turn in range(1_000):
        for _ in range(2):
            flutters.report("lost %d", turn)
        flutters.healed()
        clock.now += 0.1
    for text in ("second", "third"):  # the fault has not healed in between
        clock.now += 61
        lasts.report(text)
    assert caplog.messages == ["first", "lost 0", "lost 600 (599 similar lines were left out before)", "second"]
