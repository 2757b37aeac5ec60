"""The supervisor keeps the streaming queries running: it restarts failed queries, and sets useless checkpoints aside.

The queries of :mod:`quotahost.pipeline.queries` run on Spark's threads, and Spark doesn't restart a failed query. Every
second :class:`quotahost.pipeline.job.Job` lets the supervisor look at each query. If a disk hangs, a query's stop or
start hangs, too. So each has a thread of its own, and delays neither the other queries nor a signal.

The topics have everything that a checkpoint has, except the fill rates. So if a query fails again and again, for
example with the state of another version, the supervisor sets its checkpoint aside, and the query starts from the
topics. If that doesn't help or isn't allowed, as for the history, the log has one error that the query keeps failing.
On a full disk no new checkpoint would help, so the query waits.
"""

import logging
import re
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
from quotahost.pipeline.monitoring import Progress, read_all
from quotahost.pipeline.queries import place
from quotahost.pipeline.session import file_system

# Seconds before a failed query is restarted. Brokers don't wait for the query: their standby source answers.
_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: The supervisor sets a checkpoint aside after this many failures without a batch in between, with 15 s of pauses.
ATTEMPTS: Final = 5
_ANSWERED_WITHIN: Final = 15.0  # seconds; if Kafka hasn't answered for so long, no checkpoint is set aside
# How Linux says, in the errors of Java, that nothing can be written to a disk.
_UNWRITABLE: Final = ("No space left on device", "Disk quota exceeded", "Read-only file system")
_ASIDE: Final = ".set-aside-"
_CLOSE_WITHIN: Final = 5.0  # seconds
# Seconds to wait for a query's stop and start before the next query's turn; after a minute the log says that it hangs.
_START_WITHIN: Final = 2.0
_HELD_UP: Final = 60.0


@dataclass
class _Query:
    """A query that the supervisor keeps running, with its state."""

    name: str
    start: Callable[[], StreamingQuery]
    checkpoint: str  # the folder, if the supervisor must not set the checkpoint aside; "" for other queries
    lasting: LoggedOnce
    running: StreamingQuery | None = None
    given: object = None  # the argument of ``look`` when the query was started
    starting: threading.Thread = field(default_factory=threading.Thread)
    starting_since: float = 0.0
    id: str = ""  # Spark's id of the query, which is in the checkpoint
    batch: int = -1  # the number of the last batch that was counted
    due: float = 0.0  # when the query is started again
    failures: int = 0  # since its last batch
    cause: str = ""  # of the last of these failures
    anew_without_batch: bool = False

    def stop(self) -> None:
        if (running := self.running) is not None:  # read once: two threads may stop the query
            with suppress(OSError, Py4JError):  # if Spark has ended before
                running.stop()
                self.running = None


class Supervisor:
    """Runs the query of the volumes first, and the other queries as soon as that query has read all records."""

    FIRST: Final = "volumes"

    def __init__(
        self, progress: Progress, set_aside: Callable[[str], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start nothing yet.

        ``set_aside`` renames the checkpoint of a query and returns the new path; it may raise. ``clock`` is in seconds.
        """
        self._progress, self._set_aside, self._clock = progress, set_aside, clock
        self._queries: dict[str, _Query] = {}
        self._answered_at = 0.0
        self._all_begun = False

    def add(self, name: str, start: Callable[[], StreamingQuery], checkpoint: str = "") -> None:
        """Keep a query running. If ``checkpoint`` is given, the supervisor never sets it aside."""
        self._queries[name] = _Query(name, start, checkpoint, LoggedOnce(log, logging.ERROR, self._clock))

    def kafka_answers(self) -> None:
        # Failures while Kafka didn't answer don't count against a checkpoint, and failed queries restart immediately.
        if self._clock() - self._answered_at >= _ANSWERED_WITHIN:
            for query in self._queries.values():
                query.due, query.failures = 0.0, 0
        self._answered_at = self._clock()

    def look(self, given: object) -> None:
        """Start queries that don't run; restart queries, from their checkpoints, if ``given`` has changed."""
        # While the volumes' query reads a backlog, the other queries would take its cores.
        self._all_begun = self._all_begun or self.caught_up()
        for query in self._queries.values() if self._all_begun else (self._queries[self.FIRST],):
            self._keep(query, given)

    def caught_up(self) -> bool:
        """Return whether the last finished batch of the volumes read all records that existed."""
        # The field is read once: a batch's thread calls this method while the supervisor's thread stops the query.
        query = self._queries[self.FIRST].running
        last = query.lastProgress if query else None
        return last is not None and read_all(last)

    def close(self) -> None:
        """Stop all queries within _CLOSE_WITHIN in total: a query that waits for Kafka's answer would take longer."""
        end = time.monotonic() + _CLOSE_WITHIN
        for stopping in [start_daemon(f"stop-{each.name}", each.stop) for each in self._queries.values()]:
            stopping.join(max(0.0, end - time.monotonic()))

    def _keep(self, query: _Query, given: object) -> None:
        if query.starting.is_alive():
            if self._clock() - query.starting_since >= _HELD_UP:
                text = "query %s hangs until its disk and Kafka answer; the other queries go on"
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
        except Exception as problem:  # for example a checkpoint whose files can't be listed
            self._failed(query, str(getattr(problem, "java_exception", problem)))

    def _report(self, query: _Query, running: StreamingQuery) -> None:
        if (last := running.lastProgress) is None:
            return
        # Reading recentProgress costs more; it is needed only if several batches ended since the last look.
        for progress in [last] if int(last["batchId"]) <= query.batch + 1 else running.recentProgress:
            number = int(progress["batchId"])
            # The progress of a check without new records has the next batch's number, so it must not be counted.
            if number > query.batch and "addBatch" in progress["durationMs"]:
                query.batch = number
                self._progress.batch(query.name, progress)
        query.lasting.healed()
        query.failures, query.cause, query.anew_without_batch = 0, "", False

    def _failed(self, query: _Query, problem: str) -> None:
        self._progress.failures.labels(query.name).inc()
        reason, disk = _reason(problem), next((said for said in _UNWRITABLE if said in problem), "")
        # Only the root cause is compared, without numbers: the text names new files, and has numbers of Spark's tasks.
        if (cause := disk or re.sub("[0-9]+", "", reason.rpartition("root cause: ")[2])) != query.cause:
            log.error("query %s failed and is started again: %s", query.name, reason)
            query.cause = cause
            query.lasting.healed()  # this is another fault
        query.due = self._clock() + _PAUSES[min(query.failures, len(_PAUSES) - 1)]
        query.failures += 1
        if disk:
            remedy = "its disk is full or read-only: the query goes on by itself as soon as it can write there"
        elif query.failures < ATTEMPTS or self._clock() - self._answered_at >= _ANSWERED_WITHIN:
            return
        elif query.checkpoint:
            remedy = f"if the query can't read its checkpoint, move {query.checkpoint} away"
        elif query.anew_without_batch:  # a second new checkpoint wouldn't help
            remedy = "a new checkpoint did not help"
        else:
            self._rebuild(query)
            return
        query.lasting.report("query %s keeps failing; %s", query.name, remedy)

    def _rebuild(self, query: _Query) -> None:
        """Set a query's checkpoint aside, so that the query starts from the topics."""
        try:
            aside = self._set_aside(query.name)
        except Exception as problem:  # Hadoop's file systems raise errors of many kinds
            remedy = "let the pipeline's user write there, or stop the pipeline and move the checkpoint away"
            text = "the checkpoint of query %s can't be set aside: %s; %s"
            query.lasting.report(text, query.name, short(problem), remedy)
            return
        text = "query %s failed %d times in a row and restarts from the topics; its old checkpoint is %s"
        log.warning(text, query.name, query.failures, aside)
        query.due, query.failures, query.anew_without_batch = 0.0, 0, True


def _reason(text: str) -> str:
    """Return the line of Spark's error text that names the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "QuotahostError: " in line), lines[0] if lines else "")[:1000]


def set_checkpoint_aside(spark: SparkSession, directory: str, query: str) -> str:
    """Rename the checkpoint of a query in this directory, on any file system of Hadoop's, and return the new path.

    Checkpoints that were set aside before are then deleted. Raises Py4JJavaError or OSError if the file system doesn't
    answer or refuses.
    """
    system, old = file_system(spark, place(directory, query))
    new = old.suffix(time.strftime(f"{_ASIDE}%Y%m%dT%H%M%S", time.gmtime()))
    there = [entry.getPath() for entry in system.listStatus(old.getParent())]
    if not system.rename(old, new):
        raise OSError(f"{old.toString()} can't be renamed to {new.toString()}")
    # Only the latest is kept: a fault that occurs again and again must not fill the disk.
    for before in there:
        if before.getName().startswith(f"{query}{_ASIDE}"):
            system.delete(before, True)
    return str(new.toString())
