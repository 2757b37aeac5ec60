"""When each cluster's record is published: with a batch that isn't late, again while no snapshot comes, by a tick.

1. The roll-up of :mod:`quotahost.pipeline.cluster` makes the records. The publisher sends them to the topic from which
   every broker's factor source ``cluster-volumes`` reads, and counts them in the metrics.
2. Spark makes no batch without input, and a broker that died together with all others would then never become stale.
   So when nothing was published for a while, a thread publishes the last batch's records again.
3. Where a batch would make other records and none is due anyway, it writes a *tick*, a record of a topic of its own,
   which causes a batch. As that costs a good part of a second of a core, Spark's own source ``rate`` would cost half a
   core.
"""

import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import DataFrame, Row

from quotahost.base.background import LoggedOnce
from quotahost.base.text import short
from quotahost.pipeline import log
from quotahost.pipeline.clock import KafkaClock, Written
from quotahost.pipeline.cluster import Rules, record, rollup
from quotahost.pipeline.frames import bring_forward
from quotahost.pipeline.leadership import Leadership
from quotahost.pipeline.monitoring import Progress
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord
from quotahost.records.fields import MS


class _Last(NamedTuple):
    """What a batch has published: by time alone it would differ later than ``until`` only."""

    rules: Rules  # by which it judged
    ahead: int  # ms by which Kafka's clock was ahead of the driver's
    until: float  # Kafka's time, in ms since the epoch
    records: list[ClusterRecord]


class Publisher:
    """Takes the volumes of all brokers, batch by batch, and publishes one record for each cluster.

    Each record's sequence is higher than that of the one before. While another pipeline leads, nothing is published.
    A record that can't be made or written is counted and logged, and the other clusters' records are published: the
    next batch makes it anew.
    """

    def __init__(
        self, rules: Rules, leadership: Leadership, clock: KafkaClock, progress: Progress, period: float,
        send: Callable[[ClusterRecord], Written], tick: Callable[[], object], caught_up: Callable[[], bool],
        reading: Callable[[], bool | None],
    ) -> None:  # fmt: skip
        """Publish nothing yet.

        ``rules`` are those of the start, :meth:`registered` changes the brokers in them. ``send`` writes a record,
        ``tick`` writes a tick where nothing was published for ``period`` seconds; both may raise. ``caught_up``
        says whether the batch before this one read all records that there were, ``reading`` is that of
        :class:`quotahost.pipeline.supervisor.Supervisor`.
        """
        self._rules, self._leadership, self._clock, self._progress = rules, leadership, clock, progress
        self._send, self._caught_up, self._reading = send, caught_up, reading
        self._tick, self._period, self._attempted_at, self._no_tick = tick, period, time.monotonic(), LoggedOnce(log)
        # The threads of the batches and of the ticks publish in turn, so that what is newer is written later.
        self._publishing = threading.Lock()
        self._sequence = -1
        self._last: _Last | None = None
        self._lateness = LoggedOnce(log)
        self._faults: dict[str, LoggedOnce] = defaultdict(lambda: LoggedOnce(log, logging.ERROR))

    def registered(self, brokers: Collection[str]) -> None:
        """Take the ids of the brokers that the cluster lists now. One thread calls."""
        # In one order: the cluster lists them in any, and by other rules a new batch would be needed.
        self._rules = replace(self._rules, registered=tuple(sorted(brokers)))

    def __call__(self, volumes: DataFrame, batch: int) -> None:
        """Publish a batch of ``cluster.state``; for ``foreachBatch``."""
        with self._publishing:
            self._last = None
            # By a part of a backlog, or of what came while a cold Spark started, living brokers look dead and full
            # disks empty. This may have been the end of it, so a tick causes the next batch.
            if self._caught_up():
                self._last = self._publish_batch(volumes)
            else:
                bring_forward(volumes)
                self._tick_unless(lambda: False)

    def again(self) -> bool:
        """Publish the last batch's records once more, where a batch that began now would make the same.

        Returns whether they were published; if not, a batch is needed. Any thread may call.
        """
        # A batch that is being published is newer than what was published last.
        if not self._publishing.acquire(blocking=False):
            return False
        try:
            last, judged, now = self._last, (self._rules, self._clock.ahead), self._clock.now()
            if last is None or last[:2] != judged or now > last.until or self._reading() is not False:
                return False
            standing_by, run, sequence = self._turn()
            at = datetime.fromtimestamp(now / 1000, UTC)
            again = [replace(record, run=run, sequence=sequence, computed_at=at) for record in last.records]
            if not self._publish(again, standing_by):
                self._last = None
            return self._last is not None
        finally:
            self._publishing.release()

    def remaining(self) -> float:
        """Seconds until the next tick is due."""
        return max(0.0, self._attempted_at + self._period - time.monotonic())

    def tick_if_due(self) -> None:
        # A record may have been published while this thread slept; then the tick is due later.
        if self.remaining() > 0:
            return
        # Before the attempt: if Kafka doesn't answer, the next attempt is a whole period later, and not at once.
        self._attempted_at = time.monotonic()
        # While Spark reads, a tick would be read after that, and cost one more batch.
        self._tick_unless(lambda: self.again() or self._reading())

    def _tick_unless(self, needless: Callable[[], bool | None]) -> None:
        try:
            if not needless():
                self._tick()
            self._no_tick.healed()
        except Exception as problem:  # of Java's clients, of any kind; the next tick may succeed
            self._no_tick.report("no tick can be written: %s", short(problem))

    def _publish_batch(self, volumes: DataFrame) -> _Last | None:
        """What was published; None unless all of it was."""
        rules, ahead = self._rules, self._clock.ahead
        rows = rollup(volumes, rules, ahead).collect()
        standing_by, run, sequence = self._turn()
        made, complete = self._records(rows, rules, run, sequence)
        ages = [each.computed_at - each.newest_snapshot_at for each in made if each.newest_snapshot_at]
        if ages:
            self._clock.heard(min(ages) / MS - ahead, rules.validity / MS)
        if not self._publish(made, standing_by) or not complete:
            return None
        until = min((row["until"] for row in rows if row["until"] is not None), default=math.inf)
        return _Last(rules, ahead, until, made)

    def _turn(self) -> tuple[bool, int, int]:
        """Whether this pipeline stands by, and run and sequence of the next records."""
        # Not the batch's number, which begins with 0 again where a query begins anew.
        self._sequence += 1
        return *self._leadership.role(), self._sequence

    def _records(
        self, rows: Collection[Row], rules: Rules, run: int, sequence: int
    ) -> tuple[list[ClusterRecord], bool]:
        """The records of all clusters, and whether there is one of each."""
        made, complete = [], True
        for row in rows:
            try:
                made.append(record(row, rules, run, sequence))
            except Exception as problem:  # whatever a row holds, the other clusters' records are made
                self._failed(row["cluster"], problem)
                complete = False
        # The roll-up has no row for a cluster without snapshots, and readers must learn that all brokers are missing.
        if all(row["cluster"] != rules.cluster for row in rows):
            missing, at = tuple(sorted(rules.registered)), datetime.fromtimestamp(self._clock.now() / 1000, UTC)
            first = missing[:MAX_LISTED]
            made.append(ClusterRecord(rules.cluster, run, sequence, at, missing=len(missing), missing_brokers=first))
        return made, complete

    def _publish(self, made: Iterable[ClusterRecord], standing_by: bool) -> bool:
        """Whether all were written, or none of them is to be written by now."""
        written = [self._write(record, standing_by) for record in made]
        return all(written)

    def _write(self, made: ClusterRecord, standing_by: bool) -> bool:
        # Also of one that is not written then: the next attempt is a whole period later, and not at once.
        self._attempted_at = time.monotonic()
        self._progress.made(made, standing_by)
        if standing_by:
            return True
        if self._late(made):
            return False
        try:
            written = self._send(made)
        except Exception as problem:  # no reader would take it, or of Java's clients, of any kind
            self._failed(made.cluster, problem)
            return False
        self._clock.correct(written)
        self._faults[made.cluster].healed()
        self._progress.published.labels(made.cluster).inc()
        return True

    def _failed(self, cluster: str, problem: Exception) -> None:
        self._progress.unpublished.labels(cluster, "failed").inc()
        text = "the record of cluster %s is not published, the next batch tries again: %s"
        self._faults[cluster].report(text, cluster, short(problem))

    def _late(self, record: ClusterRecord) -> bool:
        """Whether a batch took too long, or began before a restart: its record shows the past, and the next is due.

        Below 0 is the age of one that began before the machine's clock was put back; its brokers would all look stale.

        Brokers count a record as fresh for ``validity`` after it came. One that is older than half of it would let
        them act on what was true for up to one and a half; without it their standby source answers.
        """
        age, validity = self._clock.now() / 1000 - record.computed_at.timestamp(), self._rules.validity.total_seconds()
        if abs(age) <= validity / 2:
            self._lateness.healed()
            return False
        self._progress.unpublished.labels(record.cluster, "late").inc()
        self._lateness.report(
            "a batch has taken %.0f s, more than half of --validity (%g s): it is too late to be published, and "
            "brokers go by their standby source until one is quicker; unless Kafka or this machine stood still, give "
            "the driver more cores, or raise --validity and the brokers' validity",
            age, validity,
        )  # fmt: skip
        return True
