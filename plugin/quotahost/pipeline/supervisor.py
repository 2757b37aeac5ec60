"""Keeps the streaming queries running: starts them, restarts one that failed, and reports their progress.

The queries of :mod:`quotahost.pipeline.queries` run on threads of Spark; one that ends with an error stays ended. Every
half second :class:`quotahost.pipeline.job.Job` lets the supervisor look at each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.spark.offsets import behind

_FIRST_PAUSE: Final = 1.0  # seconds before a failed query is started again; doubled each time
# Brokers don't wait for it: their standby source answers.
_LONGEST_PAUSE: Final = 30.0


class Supervisor:
    """Runs the query of the volumes first, and the others as soon as that one has read all there was at the start."""

    FIRST: Final = "volumes"

    def __init__(self, progress: Progress) -> None:
        """Nothing runs yet."""
        self._progress = progress
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._running: dict[str, StreamingQuery] = {}
        self._pauses: dict[str, tuple[float, float]] = {}  # when a query is due again, and its next pause
        self._all_begun = False

    def add(self, name: str, start: Callable[[], StreamingQuery]) -> None:
        """Keep a query running from now on; ``start`` starts it from its checkpoint."""
        self._starts[name] = start

    def look(self) -> None:
        """Start what is due, and report the progress of what runs."""
        # While a backlog is read, the other queries would take the cores from the volumes.
        self._all_begun = self._all_begun or self.caught_up()
        for name in self._starts if self._all_begun else (self.FIRST,):
            self._keep(name)

    def caught_up(self) -> bool:
        """Whether the last batch of the volumes that has ended read all records that there were."""
        query = self._running.get(self.FIRST)
        last = query.lastProgress if query is not None else None
        return last is not None and not any(map(behind, last["sources"]))

    def close(self) -> None:
        """Stop the queries."""
        for query in self._running.values():
            query.stop()

    def _keep(self, name: str) -> None:
        query = self._running.get(name)
        if query is not None and query.isActive:
            self._report(name, query)
            return
        if query is not None:
            self._failed(name, query)
        due, _ = self._pauses.get(name, (0.0, _FIRST_PAUSE))
        if time.monotonic() >= due:
            self._running[name] = self._starts[name]()

    def _report(self, name: str, query: StreamingQuery) -> None:
        last = query.lastProgress
        if last is not None:
            # Reading recentProgress costs more; it is needed only where several batches ended since the last look.
            for each in [last] if self._progress.follows(name, last) else query.recentProgress:
                self._progress.batch(name, each)
            # It has reported progress since its start, so its next failure begins with the shortest pause.
            self._pauses.pop(name, None)

    def _failed(self, name: str, query: StreamingQuery) -> None:
        problem = query.exception()
        self._progress.failed(name, _reason(str(problem)) if problem else "it ended")
        del self._running[name]
        _, pause = self._pauses.get(name, (0.0, _FIRST_PAUSE))
        self._pauses[name] = time.monotonic() + pause, min(2 * pause, _LONGEST_PAUSE)


def _reason(text: str) -> str:
    """The one line of Spark's many that names the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "BatchFailed: " in line), lines[0] if lines else "")[:500]
