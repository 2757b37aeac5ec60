"""The host's own threads: what they hand to Java or read from it, and that they end detached."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any, cast

import pytest

from quotahost.api import DataSourceTask
from quotahost.broker.host.logs import LINES_OF_CAUSE, LINES_OF_LOGGER, QUEUE_MAX, Logs
from quotahost.broker.host.plugins import Guard, Scheduler
from tests.fakes.plugin_context import eventually
from tests.fakes.shim import FakeShim


class Shim(FakeShim):
    """Remembers which threads detached themselves."""

    def detach(self) -> None:
        self.lines.append(f"detached {threading.current_thread().name}")


def fails() -> None:
    raise RuntimeError("no period")


class Task:
    """Runs each millisecond."""

    period = timedelta(milliseconds=1)

    def __init__(self) -> None:
        self.runs = 0
        self.closed_by = ""

    def run(self) -> None:
        self.runs += 1
        raise RuntimeError("of no consequence for the next run")

    def close(self) -> None:
        self.closed_by = threading.current_thread().name


def test_a_task_runs_again_and_again_and_closes_on_its_own_thread_when_it_is_no_longer_configured() -> None:
    shim, first, second = Shim(), Task(), Task()
    scheduler = Scheduler(Guard(shim), shim.detach)
    scheduler.set([("first", first), ("second", second)])
    eventually(lambda: first.runs > 1 and second.runs > 1)
    scheduler.set([("second", second)])
    assert (first.closed_by, second.closed_by) == ("quotahost-task-first", "")
    assert shim.lines == ["detached quotahost-task-first"]
    scheduler.close()
    assert second.closed_by == "quotahost-task-second"


@pytest.mark.proves("proposal-035.task")
def test_a_task_runs_at_the_start_and_then_once_in_each_period_that_it_states() -> None:
    often, seldom = Task(), Task()
    seldom.period = timedelta(hours=1)
    scheduler = Scheduler(Guard(Shim()), lambda: None)
    scheduler.set([("often", often), ("seldom", seldom)])
    eventually(lambda: often.runs > 50)
    scheduler.close()
    assert seldom.runs == 1


@pytest.mark.parametrize("period", [None, timedelta(0), 5, fails])
def test_a_task_whose_period_becomes_wrong_keeps_its_last_one_and_the_failure_is_counted(period: Any) -> None:
    shim = Shim()

    class Changing:
        runs = 0

        @property
        def period(self) -> Any:
            if not self.runs:
                return timedelta(milliseconds=1)
            return period() if callable(period) else period

        def run(self) -> None:
            self.runs += 1

    task = Changing()
    scheduler = Scheduler(Guard(shim), shim.detach)
    scheduler.set([("changing", cast("DataSourceTask", task))])
    eventually(lambda: task.runs > 2 and "changing" in shim.failed)
    scheduler.close()


def test_a_task_may_have_the_longest_period_there_is_and_still_ends_at_once() -> None:
    task = Task()
    scheduler = Scheduler(Guard(Shim()), lambda: None)
    task.period = timedelta.max
    scheduler.set([("once", task)])
    eventually(lambda: task.runs == 1)
    assert "quotahost-task-once" in {thread.name for thread in threading.enumerate()}
    scheduler.close()
    assert task.closed_by == "quotahost-task-once"


def test_log_lines_reach_the_broker_by_one_thread_and_one_logger_can_not_flood_it() -> None:
    shim = Shim()
    with Logs(shim):
        for line in range(10_000):
            logging.getLogger("chatty").info("client %d", line)
            logging.getLogger("chattier").info(f"client {line}")
        logging.getLogger("quiet").warning("seen")
    chatty = [line for line in shim.lines if line.startswith("client")]
    assert len(chatty) == LINES_OF_CAUSE + LINES_OF_LOGGER
    assert shim.lines[-2:] == ["seen", "detached quotahost-log"]


def test_a_host_ends_though_java_takes_no_line_of_the_log_any_more() -> None:
    taken, released = threading.Event(), threading.Event()

    class Stuck(FakeShim):
        def log(self, logger: str, level: int, message: str) -> None:
            taken.set()
            released.wait(60)

    def flood() -> None:
        with Logs(Stuck()):
            logging.getLogger("first").warning("taken")
            taken.wait(60)
            for name in range(QUEUE_MAX // LINES_OF_CAUSE + 1):
                for line in range(LINES_OF_CAUSE):
                    logging.getLogger(f"chatty-{name}").info("line %d", line)

    host = threading.Thread(target=flood, daemon=True)
    host.start()
    try:
        eventually(lambda: not host.is_alive())
    finally:
        released.set()
    eventually(lambda: "quotahost-log" not in [thread.name for thread in threading.enumerate()])
