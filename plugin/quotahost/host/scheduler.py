"""Tasks, each on a thread of its own, on their periods."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from quotahost.api import DataSourceTask
from quotahost.host.guard import Guard

log = logging.getLogger("quotahost.tasks")
CLOSE_WITHIN: Final = 2.0  # seconds, all tasks together


class _ScheduledTask:
    """One task: runs at once, then every period, until stopped; closes on its own thread."""

    def __init__(self, name: str, task: DataSourceTask, guard: Guard, detach: Callable[[], None]) -> None:
        self.name, self.task = name, task
        self._guard, self._detach = guard, detach
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name=f"quotahost-task-{name}", daemon=True)

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._guard.call(self.name, "run()", "it runs again after its period", self.task.run)
            self._stop.wait(self.task.period.total_seconds())
        if callable(close := getattr(self.task, "close", None)):
            self._guard.call(self.name, "close()", "it is dropped all the same", close)
        self._detach()


class Scheduler:
    """Keeps the threads of the tasks in step with the configured ones."""

    def __init__(self, guard: Guard, detach: Callable[[], None]) -> None:
        """``detach`` is called by every task's thread as its last act."""
        self._guard, self._detach = guard, detach
        self._runners: list[_ScheduledTask] = []

    def set(self, tasks: list[tuple[str, DataSourceTask]]) -> None:
        """Stop what is no longer in the list, start what is new."""
        wanted = {id(task) for _, task in tasks}
        self._end([r for r in self._runners if id(r.task) not in wanted])
        running = {id(r.task) for r in self._runners}
        for name, task in tasks:
            if id(task) not in running:
                runner = _ScheduledTask(name, task, self._guard, self._detach)
                self._runners.append(runner)
                runner.thread.start()

    def close(self) -> None:
        """Stop all and wait for them, not for longer than CLOSE_WITHIN."""
        self._end(list(self._runners))

    def _end(self, runners: list[_ScheduledTask]) -> None:
        for runner in runners:
            runner.stop()
        for runner in runners:
            runner.thread.join(CLOSE_WITHIN / len(runners))
            if runner.thread.is_alive():
                log.warning("task %s did not end in time and is left behind", runner.name)
            self._runners.remove(runner)
