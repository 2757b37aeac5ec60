"""Keeps the streaming queries running: a failed one restarts after a pause, a useless checkpoint is set aside.

The queries of :mod:`quotahost.pipeline.queries` run on threads of Spark; one that ends with an error stays ended. Every
second :class:`quotahost.pipeline.job.Job` lets the supervisor look at each. A stop or a start hangs with its disk, so
it has a thread of its own, and holds up neither the other queries nor a signal.

Everything in a checkpoint but the fill rates is in the topics, too. So that of a query that fails again and again, as
with the state of another version, is set aside, and the query begins anew. Where that is no remedy, as for the history,
one error of its own says that a query fails on.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.base.background import LoggedOnce, start_daemon
from quotahost.base.text import short
from quotahost.pipeline import log
from quotahost.pipeline.monitoring import Progress, idle, read_all
from quotahost.pipeline.queries import place
from quotahost.pipeline.session import file_system

# Seconds before a failed query is started again. Brokers don't wait for it: their standby source answers.
_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: After so many failures without a batch in between, over half a minute, the checkpoint is set aside.
ATTEMPTS: Final = 5
_ANSWERED_WITHIN: Final = 15.0  # seconds; while Kafka doesn't answer, the checkpoint isn't what is wrong
_ASIDE: Final = ".set-aside-"
_CLOSE_WITHIN: Final = 5.0  # seconds
# Seconds for a query to stop and start before the next one does; one whose disk hangs is told of after a minute.
_START_WITHIN: Final = 2.0
_HELD_UP: Final = 60.0


@dataclass
class _Query:
    """A query that is kept running, and what happened to it."""

    name: str
    start: Callable[[], StreamingQuery]
    checkpoint: str  # where it lies, of a query that may not begin anew by itself; "" for all others
    running: StreamingQuery | None = None
    given: object = None  # what it was described by when it was started
    starting: threading.Thread = field(default_factory=threading.Thread)
    starting_since: float = 0.0
    id: str = ""  # Spark's, which lies in the checkpoint
    batch: int = -1  # the number of the last batch that was counted
    due: float = 0.0  # when it is started again
    failures: int = 0  # since its last batch
    anew_without_batch: bool = False
    lasting: LoggedOnce = field(default_factory=lambda: LoggedOnce(log, logging.ERROR))

    def stop(self) -> None:
        if (running := self.running) is not None:  # read once: two threads may stop it
            with suppress(OSError, Py4JError):  # where Spark has ended before
                running.stop()
                self.running = None


class Supervisor:
    """Runs the query of the volumes first, and the others as soon as that one has read all there was at the start."""

    FIRST: Final = "volumes"

    def __init__(
        self, progress: Progress, set_aside: Callable[[str], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing runs yet.

        ``set_aside`` renames the checkpoint of a query, and returns its new place; it may raise. ``clock`` in seconds.
        """
        self._progress, self._set_aside, self._clock = progress, set_aside, clock
        self._queries: dict[str, _Query] = {}
        self._answered_at = 0.0
        self._all_begun = False

    def add(self, name: str, start: Callable[[], StreamingQuery], checkpoint: str = "") -> None:
        """Keep a query running; one whose ``checkpoint`` is named may not begin anew by itself."""
        self._queries[name] = _Query(name, start, checkpoint)

    def kafka_answers(self) -> None:
        # What failed while it did not answer says nothing of a checkpoint, and need not wait any longer.
        if self._clock() - self._answered_at >= _ANSWERED_WITHIN:
            for query in self._queries.values():
                query.due, query.failures = 0.0, 0
        self._answered_at = self._clock()

    def look(self, given: object) -> None:
        """Start what doesn't run, and what runs by anything but what is ``given`` now again, from its checkpoint."""
        # While a backlog is read, the other queries would take the cores from the volumes.
        self._all_begun = self._all_begun or self.caught_up()
        for query in self._queries.values() if self._all_begun else (self._queries[self.FIRST],):
            self._keep(query, given)

    def caught_up(self) -> bool:
        """Whether the last batch of the volumes that has ended read all records that there were."""
        # Read once: a batch's thread asks, while this one's stops the query.
        query = self._queries[self.FIRST].running
        last = query.lastProgress if query else None
        return last is not None and read_all(last)

    def close(self) -> None:
        """Stop all queries, in _CLOSE_WITHIN together: one that Kafka doesn't answer would wait for it for long."""
        end = time.monotonic() + _CLOSE_WITHIN
        for stopping in [start_daemon(f"stop-{each.name}", each.stop) for each in self._queries.values()]:
            stopping.join(max(0.0, end - time.monotonic()))

    def _keep(self, query: _Query, given: object) -> None:
        if query.starting.is_alive():
            if self._clock() - query.starting_since >= _HELD_UP:
                text = "query %s is held up, and goes on once its disk and Kafka answer; the others go on meanwhile"
                query.lasting.report(text, query.name)
            return
        if (running := query.running) is not None and query.given == given:
            if running.isActive:
                self._report(query, running)
                return
            query.running = None
            self._failed(query, str(running.exception() or "it ended"))
        if query.running is not None or self._clock() >= query.due:
            query.given, query.starting_since = given, self._clock()
            query.starting = start_daemon(f"start-{query.name}", lambda: self._start(query))
            query.starting.join(_START_WITHIN)

    def _start(self, query: _Query) -> None:
        try:
            query.stop()
            query.running = running = query.start()
            if running.id != query.id:  # the batches of another checkpoint are numbered from 0
                query.id, query.batch = running.id, -1
        except Exception as problem:  # a checkpoint of which not even the names can be read
            self._failed(query, str(getattr(problem, "java_exception", problem)))

    def _report(self, query: _Query, running: StreamingQuery) -> None:
        last = running.lastProgress
        if last is None:
            return
        # Reading recentProgress costs more; it is needed only where several batches ended since the last look.
        for progress in [last] if int(last["batchId"]) <= query.batch + 1 else running.recentProgress:
            number = int(progress["batchId"])
            # A look that found nothing bears the number of the next batch, which would then not be counted.
            if number > query.batch and not idle(progress):
                query.batch = number
                self._progress.batch(query.name, progress)
        query.lasting.healed()
        query.failures, query.anew_without_batch = 0, False

    def _failed(self, query: _Query, problem: str) -> None:
        self._progress.failed(query.name, _reason(problem))
        query.due = self._clock() + _PAUSES[min(query.failures, len(_PAUSES) - 1)]
        query.failures += 1
        if query.failures < ATTEMPTS or self._clock() - self._answered_at >= _ANSWERED_WITHIN:
            return
        if not query.checkpoint and not query.anew_without_batch:
            self._rebuild(query)
            return
        remedy = "it has begun anew, and the reason is another one than its checkpoint"
        if query.checkpoint:
            remedy = f"if it can't read its checkpoint, move {query.checkpoint} away"
        text = "query %s goes on failing, %d times in a row by now: make room where none is left; %s"
        query.lasting.report(text, query.name, query.failures, remedy)

    def _rebuild(self, query: _Query) -> None:
        """Let a query begin anew; not again before it has had a batch, as its checkpoint is not what is wrong then."""
        try:
            aside = self._set_aside(query.name)
        except Exception as problem:  # of Hadoop's file systems, of any kind
            remedy = "let the pipeline's user write there, or stop the pipeline and move it away"
            text = "the checkpoint of query %s can't be set aside: %s; %s"
            query.lasting.report(text, query.name, short(problem), remedy)
            return
        text = "query %s begins anew from the topics, as it has failed %d times in a row; its checkpoint is kept as %s"
        log.warning(text, query.name, query.failures, aside)
        query.due, query.failures, query.anew_without_batch = 0.0, 0, True


def _reason(text: str) -> str:
    """The one line of Spark's many that names the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "BatchFailed: " in line), lines[0] if lines else "")[:500]


def set_checkpoint_aside(spark: SparkSession, directory: str, query: str) -> str:
    """Rename the checkpoint of a query in this directory, wherever Hadoop keeps it, and return its new place.

    One that was set aside before is deleted then. Raises Py4JJavaError or OSError if the file system doesn't answer or
    refuses.
    """
    system, old = file_system(spark, place(directory, query))
    new = old.suffix(time.strftime(f"{_ASIDE}%Y%m%dT%H%M%S", time.gmtime()))
    there = [entry.getPath() for entry in system.listStatus(old.getParent())]
    if not system.rename(old, new):
        raise OSError(f"{old.toString()} can't be renamed to {new.toString()}")
    # Only the newest is kept: a fault that comes again must not fill the disk.
    for before in there:
        if before.getName().startswith(f"{query}{_ASIDE}"):
            system.delete(before, True)
    return str(new.toString())
