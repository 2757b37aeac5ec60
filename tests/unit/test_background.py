"""Threads that repeat one thing, and faults that are logged once."""

import logging
import threading

import pytest

from quotahost.background import LoggedOnce, Periodic
from tests.fakes.plugin_context import WITHIN


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


def test_a_fault_that_comes_and_goes_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    once = LoggedOnce(logging.getLogger("test"), clock=lambda: now[0])
    for turn in range(1_000):
        once.report("lost %d", turn)
        once.healed()
        now[0] += 0.1
    assert caplog.messages == ["lost 0", "lost 600 (599 such lines were left out before)"]


def test_a_fault_that_lasts_is_logged_once_the_minute_is_over(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    once = LoggedOnce(logging.getLogger("test"), clock=lambda: now[0])
    for _ in range(3):
        once.report("first")
    assert once.healed()
    assert not once.report("second")
    now[0] = 60
    assert once.report("second")
    assert [message[:6] for message in caplog.messages] == ["first", "second"]
