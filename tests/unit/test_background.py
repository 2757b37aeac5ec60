"""Threads that repeat one thing, and faults that are logged once."""

from __future__ import annotations

import logging
import threading

import pytest

from quotahost.background import LoggedOnce, Periodic


def test_work_is_done_at_once_and_again_until_it_is_closed() -> None:
    three = threading.Semaphore(0)
    periodic = Periodic("test", three.release, lambda: 0.001)
    assert all(three.acquire(timeout=10) for _ in range(3))
    assert periodic.close(within=10)
    assert periodic.closing


def test_a_wake_ends_the_wait() -> None:
    done = threading.Semaphore(0)
    periodic = Periodic("test", done.release, lambda: 3600)
    assert done.acquire(timeout=10)
    periodic.wake()
    assert done.acquire(timeout=10)
    assert periodic.close(within=10)


def test_close_does_not_wait_for_work_that_hangs() -> None:
    hang, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        hang.wait()

    periodic = Periodic("test", work, lambda: 3600)
    assert begun.wait(10)
    assert not periodic.close(within=0.01)
    hang.set()
    assert periodic.close(within=10)


def test_a_fault_is_logged_once_until_it_heals(caplog: pytest.LogCaptureFixture) -> None:
    once = LoggedOnce(logging.getLogger("test"))
    for _ in range(3):
        once.report("the disk %s is gone", "/dev/sda")
    once.healed()
    once.report("the disk %s is gone", "/dev/sdb")
    assert [record.getMessage() for record in caplog.records] == [
        "the disk /dev/sda is gone",
        "the disk /dev/sdb is gone",
    ]
