"""Publishes one record for each cluster with each batch of the query of the volumes, and again with a tick in between.

The roll-up of :mod:`quotahost.pipeline.volumes.aggregate` makes a row for each cluster, and
:mod:`quotahost.pipeline.volumes.record` a record of the row. ``Output`` takes the record to the topic from which every
broker's factor source ``cluster-volumes`` reads it.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from pyspark.sql import DataFrame, Row

from quotahost.background import LoggedOnce
from quotahost.pipeline.kafka.clients import short
from quotahost.pipeline.kafka.clock import KafkaClock, Written
from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.spark.frames import bring_forward
from quotahost.pipeline.spark.plan_cache import PlanCache
from quotahost.pipeline.volumes.aggregate import Rules, rollup
from quotahost.pipeline.volumes.record import Last, record, true_until
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord

log = logging.getLogger("quotahost.pipeline")


#: Why a batch has published nothing of a cluster: the batch took too long, or the record couldn't be made or written.
Unpublished = Literal["late", "failed"]
#: Waits until a record is written.
Sending = Callable[[], Written]


class Output(Protocol):
    """Where a publisher's records go; :class:`quotahost.pipeline.job.Output` in the pipeline."""

    def send(self, record: ClusterRecord) -> Sending:
        """Begin to write a record."""

    def made(self, record: ClusterRecord, standing_by: bool) -> None:
        """This record was made; while ``standing_by``, it is not sent."""

    def published(self, record: ClusterRecord) -> None:
        """It was written."""

    def unpublished(self, cluster: str, reason: Unpublished) -> None:
        """A batch has published nothing of this cluster."""

    def caught_up(self) -> bool:
        """Whether the batch before this one read all records that there were."""


class Publisher:
    """Takes the volumes of all brokers, batch by batch, and publishes one record for each cluster.

    Each record's sequence is higher than that of the one before. While another pipeline leads, nothing is published.
    A record that can't be made or written is counted and logged, and the other clusters' records are published: the
    next batch makes it anew.
    """

    def __init__(self, rules: Rules, leadership: Leadership, output: Output, clock: KafkaClock) -> None:
        """``rules`` as at the start; :meth:`registered` changes the brokers in them."""
        self._rules, self._leadership, self._output = rules, leadership, output
        self._clock, self._plans = clock, PlanCache()
        self._lock = threading.Lock()
        # The threads of the batches and of the ticks publish in turn, so that what is newer is written later.
        self._publishing = threading.Lock()
        self._sequence = -1
        self._last: Last | None = None
        self._lateness = LoggedOnce(log)
        self._faults: dict[str, LoggedOnce] = defaultdict(lambda: LoggedOnce(log, logging.ERROR))

    def registered(self, brokers: Collection[str]) -> None:
        """Take the ids of the brokers that the cluster lists now. Any thread may call."""
        with self._lock:
            # In one order: the cluster lists them in any, and other rules cost a new plan.
            self._rules = replace(self._rules, registered=tuple(sorted(brokers)))

    def __call__(self, volumes: DataFrame, batch: int) -> None:
        """Publish a batch of ``aggregate.state``; for ``foreachBatch``."""
        with self._publishing:
            self._last = None
            # By a part of a backlog, or of what came while a cold Spark started, living brokers look dead and full
            # disks empty.
            if not self._output.caught_up():
                bring_forward(volumes)
                return
            self._last = self._publish_batch(volumes, batch)

    def again(self, nothing_came: Callable[[int], bool]) -> bool:
        """Publish the last batch's records once more, where a batch that began now would make the same.

        Any thread may call.

        Args:
            nothing_came: whether Kafka has no snapshot beyond those that were read up to the batch of this number.

        Returns:
            Whether they were published; if not, a batch is needed.
        """
        # A batch that is being published is newer than what was published last.
        if not self._publishing.acquire(blocking=False):
            return False
        try:
            # The time comes first: of what came since then, the records need to say nothing.
            last, rules, now = self._last, self._rules, self._clock.now()
            if last is None or not last.holds(rules, self._clock.ahead, now) or not nothing_came(last.batch):
                return False
            standing_by, run = self._leadership.stands_by(), self._leadership.run
            if not self._publish(last.again(run, self._next(last.batch), now), standing_by):
                self._last = None
                return False
            return True
        finally:
            self._publishing.release()

    def _publish_batch(self, volumes: DataFrame, batch: int) -> Last | None:
        """What was published; None unless all of it was."""
        with self._lock:
            rules, ahead = self._rules, self._clock.ahead
        # stands_by() comes first: where the other pipeline has ceased to publish, it changes the run.
        standing_by, run = self._leadership.stands_by(), self._leadership.run
        rows = self._clusters(volumes, rules, ahead)
        made, complete = self._records(rows, rules, run, self._next(batch))
        if not self._publish(made, standing_by) or not complete:
            return None
        return Last(batch, rules, ahead, true_until(rows), tuple(made))

    def _next(self, batch: int) -> int:
        """The next sequence; batches are numbered likewise, so that it starts with the first one's number."""
        self._sequence = max(batch, self._sequence + 1)
        return self._sequence

    def _publish(self, made: Iterable[ClusterRecord], standing_by: bool) -> bool:
        """Whether all were written, or none of them is to be written by now."""
        # All are on their way before the first is waited for: clusters don't wait for each other's timeouts.
        sent = [self._send(each, standing_by) for each in made]
        done = [self._finish(*each) for each in sent if each is not None]
        return standing_by or (None not in sent and all(done))

    def _records(self, rows: Iterable[Row], rules: Rules, run: int, sequence: int) -> tuple[list[ClusterRecord], bool]:
        """The records of all clusters, and whether there is one of each."""
        made, complete = [], True
        clusters = {row["cluster"]: row for row in rows}
        for cluster, row in clusters.items():
            try:
                made.append(record(row, run, sequence))
            except Exception as problem:  # whatever a row holds, the other clusters' records are made
                self._failed(cluster, problem)
                complete = False
        # The roll-up has no row for a cluster without snapshots.
        if rules.cluster not in clusters:
            made.append(_without_brokers(rules, run, sequence, self._clock.now()))
        return made, complete

    def _clusters(self, volumes: DataFrame, rules: Rules, ahead: int) -> list[Row]:
        # The plan contains ``ahead``, and a new value costs a new plan. While the clocks agree, KafkaClock keeps it 0.
        return self._plans.over(volumes, lambda batch: rollup(batch, rules, ahead), rules, ahead).collect()

    def _send(self, made: ClusterRecord, standing_by: bool) -> tuple[ClusterRecord, Sending] | None:
        self._output.made(made, standing_by)
        if standing_by or self._late(made):
            return None
        try:
            return made, self._output.send(made)
        except Exception as problem:  # no reader would take it, or Kafka's client doesn't
            self._failed(made.cluster, problem)
            return None

    def _finish(self, made: ClusterRecord, sending: Sending) -> bool:
        try:
            written = sending()
        except Exception as problem:  # of Java's clients, of any kind; the next batch may succeed
            self._failed(made.cluster, problem)
            return False
        self._clock.correct(written)
        self._faults[made.cluster].healed()
        self._output.published(made)
        return True

    def _failed(self, cluster: str, problem: Exception) -> None:
        self._output.unpublished(cluster, "failed")
        text = "the record of cluster %s is not published, the next batch tries again: %s"
        self._faults[cluster].report(text, cluster, short(problem))

    def _late(self, record: ClusterRecord) -> bool:
        """Whether a batch took too long, or began before a restart: its record shows the past, and the next is due.

        Brokers count a record as fresh for ``validity`` after it came. One that is older than half of it would let
        them act on what was true for up to one and a half; without it their standby source answers.
        """
        age = self._clock.now() / 1000 - record.computed_at.timestamp()
        late = age > self._rules.validity.total_seconds() / 2
        if late:
            self._output.unpublished(record.cluster, "late")
            self._lateness.report(
                "a batch has taken %.0f s, more than half of --validity (%g s): it is too late to be published, and "
                "brokers go by their standby source until one is quicker; give the driver more cores, or raise "
                "--validity and the brokers' validity",
                age, self._rules.validity.total_seconds(),
            )  # fmt: skip
        else:
            self._lateness.healed()
        return late


def _without_brokers(rules: Rules, run: int, sequence: int, now: int) -> ClusterRecord:
    """The record of the own cluster while no broker of it has a snapshot: readers must learn that all are missing."""
    missing = sorted(rules.registered)
    return ClusterRecord(
        rules.cluster, run, sequence, datetime.fromtimestamp(now / 1000, UTC),
        missing=len(missing), missing_brokers=tuple(missing[:MAX_LISTED]),
    )  # fmt: skip
