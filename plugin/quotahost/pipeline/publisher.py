"""The publisher writes each cluster's record with each batch that isn't late; ticks cause batches without snapshots.

1. The roll-up of :mod:`quotahost.pipeline.cluster` makes the records. The publisher sends them to the topic that every
   broker's factor source ``cluster-volumes`` reads, and counts them in the metrics.
2. Spark runs no batch without input, so if all brokers died together, none of them would become stale. If nothing was
   published for a while, a thread writes a *tick*, a record of a topic of its own, which causes a batch. A batch costs
   a good part of a second of a core, so Spark's own source ``rate`` would cost half a core.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from quotahost.base.background import LoggedOnce
from quotahost.base.text import short
from quotahost.pipeline import log
from quotahost.pipeline.clock import KafkaClock, Written
from quotahost.pipeline.cluster import Kind, Rules, by_cluster, record, rollup
from quotahost.pipeline.frames import bring_forward
from quotahost.pipeline.leadership import Leadership
from quotahost.pipeline.monitoring import Progress
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord
from quotahost.records.fields import MS


class Publisher:
    """Takes the volumes of all brokers, batch by batch, and publishes one record for each cluster.

    While another pipeline leads, the publisher writes nothing. If a record can't be made or written, the publisher
    counts and logs the failure, and publishes the other clusters' records. The next batch makes the record again.
    """

    def __init__(
        self, rules: Rules, leadership: Leadership, clock: KafkaClock, progress: Progress, period: float,
        send: Callable[[ClusterRecord], Written], tick: Callable[[], object], caught_up: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Publish nothing yet.

        ``rules`` are the rules at the start; :meth:`registered` changes their brokers. ``send`` writes a record;
        ``tick`` writes a tick when nothing was published for ``period`` seconds; both may raise. ``caught_up`` says
        whether the previous batch read all records that existed.
        """
        self._rules, self._leadership, self._clock, self._progress = rules, leadership, clock, progress
        self._send, self._caught_up = send, caught_up
        self._tick, self._period, self._attempted_at, self._no_tick = tick, period, time.monotonic(), LoggedOnce(log)
        self._sequence = -1
        self._lateness = LoggedOnce(log)
        self._faults: dict[str, LoggedOnce] = defaultdict(lambda: LoggedOnce(log, logging.ERROR))

    def registered(self, brokers: Collection[str]) -> None:
        """Take the ids of the brokers that the cluster lists now. Only one thread may call this method."""
        self._rules = replace(self._rules, registered=tuple(brokers))

    def __call__(self, volumes: DataFrame, batch: int) -> None:
        """Publish the records of a batch of ``cluster.state``; ``foreachBatch`` calls this method."""
        # While a backlog, or the records from a cold Spark's start, are read in part only, live brokers look dead and
        # full disks look empty, so nothing is published. If no more records come, a tick causes the next batch.
        if not self._caught_up():
            bring_forward(volumes)
            self._write_tick()
            return
        rules, ahead = self._rules, self._clock.ahead
        clusters = by_cluster(rollup(volumes, rules, ahead).collect())
        standing_by, run = self._leadership.role()
        made = self._records(clusters, rules, run)
        ages = [each.computed_at - each.newest_snapshot_at for each in made if each.newest_snapshot_at]
        if ages:
            self._clock.heard(min(ages) / MS - ahead, rules.validity / MS)
        for each in made:
            self._write(each, standing_by)

    def remaining(self) -> float:
        """Return the seconds until the next tick is due."""
        return max(0.0, self._attempted_at + self._period - time.monotonic())

    def tick_if_due(self) -> None:
        # If a record was published while this thread slept, the tick is due later.
        if self.remaining() > 0:
            return
        # The time is set before the attempt: if Kafka doesn't answer, the next attempt follows a whole period later.
        self._attempted_at = time.monotonic()
        self._write_tick()

    def _write_tick(self) -> None:
        # Java's client raises errors of many kinds; the next tick may succeed.
        with self._no_tick.caught("the tick can't be written: %s", short):
            self._tick()

    def _records(self, clusters: Mapping[str, Sequence[Kind]], rules: Rules, run: int) -> list[ClusterRecord]:
        """Return the records of all clusters, except those whose record can't be made."""
        # The batch's number can't serve as the sequence: it restarts at 0 when the query loses its checkpoint.
        self._sequence = sequence = self._sequence + 1
        made = []
        for cluster, kinds in clusters.items():
            try:
                made.append(record(cluster, kinds, rules, run, sequence))
            except Exception as problem:  # a bad row of one cluster must not stop the records of the others
                self._failed(cluster, problem)
        # The roll-up has no row for a cluster without snapshots, but readers must learn that all brokers are missing.
        if rules.cluster not in clusters:
            missing, at = tuple(sorted(rules.registered)), datetime.fromtimestamp(self._clock.now() / 1000, UTC)
            first = missing[:MAX_LISTED]
            made.append(ClusterRecord(rules.cluster, run, sequence, at, missing=len(missing), missing_brokers=first))
        return made

    def _write(self, made: ClusterRecord, standing_by: bool) -> None:
        # A record that isn't written counts, too, so the next attempt follows a whole period later.
        self._attempted_at = time.monotonic()
        self._progress.made(made, standing_by)
        if standing_by or self._late(made):
            return
        try:
            written = self._send(made)
        except Exception as problem:  # readers would refuse the record, or Java's client failed
            self._failed(made.cluster, problem)
            return
        self._clock.correct(written)
        self._faults[made.cluster].healed()
        self._progress.published.labels(made.cluster).inc()

    def _failed(self, cluster: str, problem: Exception) -> None:
        self._progress.unpublished.labels(cluster, "failed").inc()
        text = "the record of cluster %s is not published; the next batch tries again: %s"
        self._faults[cluster].report(text, cluster, short(problem))

    def _late(self, record: ClusterRecord) -> bool:
        """Return whether a record is outdated, because its batch took too long or began before a restart; log it.

        Brokers treat a record as fresh for ``validity`` after it arrives. If a record is older than half of that, they
        could act on a state of up to one and a half ``validity`` ago. If no record comes, their standby source answers.

        If the batch began before the machine's clock was set back, the age is below 0, and all brokers look stale.
        """
        age, validity = self._clock.now() / 1000 - record.computed_at.timestamp(), self._rules.validity.total_seconds()
        if abs(age) <= validity / 2:
            self._lateness.healed()
            return False
        self._progress.unpublished.labels(record.cluster, "late").inc()
        self._lateness.report(
            "a record is %.0f s old, more than half of --validity (%g s), and is not published: brokers use their "
            "standby source until a batch is quicker; unless Kafka or this machine stood still, give the driver more "
            "cores, or raise --validity and the brokers' validity",
            age, validity,
        )  # fmt: skip
        return True
