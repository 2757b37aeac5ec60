"""Publishes one record for each cluster with each batch of the query of the volumes.

The roll-up of :mod:`quotahost.pipeline.volumes.aggregate` makes a row for each cluster, and
:mod:`quotahost.pipeline.volumes.record` a record of the row. ``Output`` takes the record to the topic from which every
broker's factor source ``cluster-volumes`` reads it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from pyspark.sql import DataFrame, Row

from quotahost.background import LoggedOnce
from quotahost.pipeline.kafka.clock import KafkaClock
from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.spark.plan_cache import PlanCache
from quotahost.pipeline.spark.sinks import bring_forward
from quotahost.pipeline.volumes.aggregate import Rules, rollup
from quotahost.pipeline.volumes.record import record
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord

log = logging.getLogger("quotahost.pipeline")


class Output(Protocol):
    """Where a publisher's records go; :class:`quotahost.pipeline.job.Output` in the pipeline."""

    def send(self, record: ClusterRecord) -> int:
        """Write a record; returns Kafka's timestamp of it, in ms since the epoch."""

    def published(self, record: ClusterRecord, standing_by: bool) -> None:
        """A batch has made this record; while ``standing_by``, it was not sent."""

    def caught_up(self) -> bool:
        """Whether the batch before this one read all records that there were."""


class Publisher:
    """Takes the volumes of all brokers, batch by batch, and publishes one record for each cluster.

    A batch that is done again publishes the same sequence again. While another pipeline leads, nothing is published.
    """

    def __init__(self, rules: Rules, leadership: Leadership, output: Output, clock: KafkaClock | None = None) -> None:
        """``rules`` as at the start; :meth:`registered` changes the brokers in them. It corrects the ``clock``."""
        self._rules, self._leadership, self._output = rules, leadership, output
        self._clock, self._plans = clock or KafkaClock(), PlanCache()
        self._lock = threading.Lock()
        self._lateness = LoggedOnce(log)

    def registered(self, brokers: Collection[str]) -> None:
        """Take the ids of the brokers that the cluster lists now. Any thread may call."""
        with self._lock:
            self._rules = replace(self._rules, registered=tuple(brokers))

    def __call__(self, volumes: DataFrame, batch: int) -> None:
        """Publish a batch of ``aggregate.state``; for ``foreachBatch``."""
        with self._lock:
            rules = self._rules
        # By a part of a backlog, or of what came while a cold Spark started, living brokers look dead and full disks
        # empty.
        if not self._output.caught_up():
            bring_forward(volumes)
            return
        # stands_by() comes first: where the other pipeline has ceased to publish, it changes the run.
        standing_by, run = self._leadership.stands_by(), self._leadership.run
        found = [record(row, run, batch) for row in self._clusters(volumes, rules)]
        # The roll-up has no row for a cluster without snapshots.
        if all(each.cluster != rules.cluster for each in found):
            found.append(_without_brokers(rules, run, batch, self._clock.now()))
        for each in found:
            if not standing_by and not self._late(each):
                self._clock.correct(self._output.send(each))
            self._output.published(each, standing_by)

    def _clusters(self, volumes: DataFrame, rules: Rules) -> list[Row]:
        # The plan contains ``ahead``, and a new value costs a new plan. While the clocks agree, KafkaClock keeps it 0.
        ahead = self._clock.ahead
        return self._plans.over(volumes, lambda batch: rollup(batch, rules, ahead), rules, ahead).collect()

    def _late(self, record: ClusterRecord) -> bool:
        """Whether a batch took too long, or began before a restart: its record shows the past, and the next is due."""
        age = self._clock.now() / 1000 - record.computed_at.timestamp()
        late = age > self._rules.validity.total_seconds() / 2
        if late:
            self._lateness.report("a batch has taken %.0f s: it is too late to be published; the next follows", age)
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
