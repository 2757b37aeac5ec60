"""Runs each task on a thread of its own, so that a task which blocks delays nobody else.

Tasks such as ``publish-volumes`` wait for Kafka or for disks; the host thread must not. The loop hands over the tasks
at the start and after each live change; a task that is no longer among them is stopped and closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Final

from quotahost.api import DataSourceTask
from quotahost.background import Periodic, start_daemon
from quotahost.broker.discovery.build import check_period
from quotahost.broker.host.guard import Failed, Guard

log = logging.getLogger("quotahost.tasks")
CLOSE_WITHIN: Final = 2.0  # seconds, for all tasks together, of the 4 s that the shim waits for the host
_UNKNOWN: Final = timedelta(minutes=1)  # the period of a task that was right when it was built and never since


class _Period:
    """The period of one task, which the task may change while it runs, and may get wrong."""

    def __init__(self, name: str, task: DataSourceTask, guard: Guard) -> None:
        self._name, self._task, self._guard = name, task, guard
        self._last = _UNKNOWN
        self.seconds()  # as it was built with, before the first run may change it

    def seconds(self) -> float:
        """The period now, or the last one that could be used."""
        now = self._guard.call(self._name, "period", "its last period stays", lambda: check_period(self._task.period))
        if not isinstance(now, Failed):
            self._last = now
        return self._last.total_seconds()


class Scheduler:
    """Keeps one thread for each configured task."""

    def __init__(self, guard: Guard, detach: Callable[[], None]) -> None:
        """Every task's thread calls ``detach`` as its last act."""
        self._guard, self._detach = guard, detach
        self._running: dict[int, tuple[str, Periodic]] = {}  # by the task's id()

    def set(self, tasks: Iterable[tuple[str, DataSourceTask]]) -> None:
        """Stop the tasks that are no longer in the list, start the new ones."""
        wanted = {id(task): (name, task) for name, task in tasks}
        self._end([key for key in self._running if key not in wanted])
        for key, (name, task) in wanted.items():
            if key not in self._running:
                self._running[key] = name, self._start(name, task)

    def close(self) -> None:
        """Stop all and wait for them, not for longer than CLOSE_WITHIN."""
        self._end(list(self._running))

    def _start(self, name: str, task: DataSourceTask) -> Periodic:
        def run() -> None:
            self._guard.call(name, "run()", "it runs again after its period", task.run)

        def end() -> None:
            # On the task's own thread, where no run() can be under way (contract, sentences 4 and 7).
            if callable(close := getattr(task, "close", None)):
                self._guard.call(name, "close()", "it is dropped all the same", close)
            self._detach()

        start = partial(start_daemon, at_end=end)
        return Periodic(f"task-{name}", run, _Period(name, task, self._guard).seconds, start)

    def _end(self, keys: list[int]) -> None:
        for key in keys:
            self._running[key][1].close(within=0)  # all hear of it before the first is waited for
        for key in keys:
            name, thread = self._running.pop(key)
            if not thread.close(CLOSE_WITHIN / len(keys)):
                log.warning("task %s did not end in time and is left behind", name)
