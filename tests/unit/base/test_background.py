"""Tests threads that repeat one call, and faults that are logged once."""

import logging
import threading
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
    clock, start, wake = Clock(0.0), Mock(), Mock(**{"wait.side_effect": StopIteration})
    monkeypatch.setattr("quotahost.base.background.time", SimpleNamespace(monotonic=clock))
    periodic = Periodic("test", lambda: setattr(clock, "now", clock.now + 6), lambda: 1.0, start, rest=9)
    monkeypatch.setattr(periodic, "_wake", wake)
    with pytest.raises(StopIteration):
        start.call_args.args[1]()
    wake.wait.assert_called_once_with(54.0)


def test_a_fault_that_comes_and_goes_or_lasts_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = Clock(0.0)
    flutters, lasts = (LoggedOnce(logging.getLogger("test"), clock=clock) for _ in range(2))
    for _ in range(3):
        lasts.report("first")
    assert lasts.healed("first is over")
    for _ in range(3):
        lasts.report("second")
    for turn in range(1_000):
        for _ in range(2):
            flutters.report("lost %d", turn)
        flutters.healed("found")
        clock.now += 0.1
    for text in ("second", "third"):  # the fault has not healed in between
        clock.now += 61
        lasts.report(text)
    assert [line.message for line in caplog.records if line.levelname == "INFO"] == ["first is over", "found", "found"]
    warned = [line.message for line in caplog.records if line.levelname == "WARNING"]
    assert warned == ["first", "lost 0", "lost 600 (599 similar lines were left out before)", "second"]
