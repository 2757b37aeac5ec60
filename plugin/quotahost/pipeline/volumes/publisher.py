"""What is done with each batch: roll up, publish, say so."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row

from quotahost.pipeline.kafka.clients import KafkaClock
from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.spark.plan_cache import PlanCache
from quotahost.pipeline.spark.session import compile_for
from quotahost.pipeline.spark.sinks import bring_forward
from quotahost.pipeline.volumes.aggregate import Rules, rollup
from quotahost.pipeline.volumes.record import record
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord, encode

log = logging.getLogger("quotahost.pipeline")


class Publisher:
    """Takes the volumes of all brokers, batch by batch, and publishes one record for each cluster.

    A batch that is replayed publishes the same sequence again. While a pipeline that was launched later publishes,
    nothing is.
    """

    def __init__(
        self,
        rules: Rules,
        leadership: Leadership,
        send: Callable[[bytes, bytes], int],
        published: Callable[[ClusterRecord], None],
        caught_up: Callable[[], bool],
    ) -> None:
        """``send`` takes key and value, and answers Kafka's time when they are kept; ``published`` is told what was.

        ``caught_up`` says whether the batch before this one has read all that there was: with a part of a backlog, or
        of what came while a cold Spark took its time, living brokers look dead and full disks empty.
        """
        self._rules, self._leadership, self._send, self._published = rules, leadership, send, published
        self._caught_up = caught_up
        self._clock, self._plans = KafkaClock(), PlanCache()
        self._lock = threading.Lock()
        self._told_late = False

    def registered(self, brokers: Collection[str]) -> None:
        """The cluster's brokers are these now."""
        with self._lock:
            self._rules = replace(self._rules, registered=tuple(brokers))

    def __call__(self, volumes: DataFrame, batch: int) -> None:
        """A batch of ``aggregate.state``, for ``foreachBatch``."""
        with self._lock:
            rules = self._rules
        if not self._caught_up():
            bring_forward(volumes)
            return
        silent, run = self._leadership.stands_by(), self._leadership.run
        found = [record(row, run, batch) for row in self._clusters(volumes, rules)]
        if all(each.cluster != rules.cluster for each in found):
            found.append(_nobody(rules, run, batch, self._clock.now()))
        for each in found:
            if not silent and not self._late(each):
                self._clock.correct(self._send(each.cluster.encode(), encode(each)))
            self._published(each)
        compile_for(volumes.sparkSession, sum(each.reporting + each.stale for each in found))

    def _clusters(self, volumes: DataFrame, rules: Rules) -> list[Row]:
        ahead = self._clock.ahead
        return self._plans.over(volumes, lambda batch: rollup(batch, rules, ahead), rules, ahead).collect()

    def _late(self, record: ClusterRecord) -> bool:
        """A batch that took too long, or was begun before a restart, tells of what was; the next is due at once."""
        age = self._clock.now() / 1000 - record.computed_at.timestamp()
        late = age > self._rules.validity.total_seconds() / 2
        if late and not self._told_late:
            log.warning("a batch has taken %.0f s: it is too late to be published; the next follows", age)
        self._told_late = late
        return late


def _nobody(rules: Rules, run: int, sequence: int, now: int) -> ClusterRecord:
    """The own cluster when no broker of it has a snapshot: that is worth a record, too."""
    missing = sorted(rules.registered)
    return ClusterRecord(
        rules.cluster, run, sequence, datetime.fromtimestamp(now / 1000, UTC),
        missing=len(missing), missing_brokers=tuple(missing[:MAX_LISTED]),
    )  # fmt: skip
