"""``Progress`` logs a line every ten seconds and serves metrics: batches by query, published records by cluster.

:mod:`quotahost.pipeline.supervisor` hands over Spark's progress of each batch, :mod:`quotahost.pipeline.publisher` each
record. Spark's progress has Kafka's offsets, which show how far a query is behind.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from quotahost.base.background import LineLimit
from quotahost.base.text import printable
from quotahost.pipeline import log
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.units.show import show_factor, show_seconds

#: The name of the dead letters' query: in the checkpoint, in the label ``query``, and of the count that Spark observes.
DEAD_LETTERS: Final = "refused"
_LARGE: Final = 10_000  # unread records of a query; if there are more, the log has a line
_EVERY: Final = 10.0  # seconds between two log lines of a cluster while its number of brokers doesn't change


class Progress:
    """Counts the batches and rows of each query, and shows the latest record of each cluster."""

    def __init__(self) -> None:
        """Make the metrics; Prometheus can read them after :meth:`serve`."""
        self.registry = CollectorRegistry()
        counter = partial(Counter, namespace="quotahost_pipeline", registry=self.registry)
        gauge = partial(Gauge, namespace="quotahost_pipeline", registry=self.registry)
        self._batches = counter("batches", "Batches done", ["query"])
        self._rows = counter("rows", "Records read", ["query"])
        self._refused = counter("refused", "Records refused and written to the dead-letter topic")
        self.published = counter("published", "Records published", ["cluster"])
        text = "Batches that published nothing of a cluster: late, or the record could not be made or written"
        self.unpublished = counter("unpublished", text, ["cluster", "reason"])
        text = "Cluster records that no pipeline of these clusters can have written"
        self.refused_runs = counter("refused_runs", text, ["reason"])
        self.failures = counter("failures", "Times that a query failed and was started again", ["query"])
        self.standing_by = gauge("standing_by", "1 while another pipeline, launched later, publishes")
        self._seconds = gauge("batch_seconds", "Duration of the last batch", ["query"])
        self._behind = gauge("records_behind", "Records that are not read yet", ["query"])
        self._state_rows = gauge("state_rows", "Brokers remembered", ["query"])
        self._state_bytes = gauge("state_bytes", "Memory that the state takes", ["query"])
        self._age = gauge("age_seconds", "Age of the latest snapshot when the record was published", ["cluster"])
        self._brokers = gauge("brokers", "Brokers that report, are stale, or are missing", ["cluster", "state"])
        self._volumes = gauge("volumes", "Volumes of the brokers that report", ["cluster"])
        self._capacity = gauge("capacity_bytes", "Sum of the volumes' capacities", ["cluster"])
        self._consumed = gauge("consumed_bytes", "Sum of the bytes that the volumes consume", ["cluster"])
        self._factor = gauge("factor", "Smallest factor by published limits, 1 without limits", ["cluster"])
        self._refused_so_far = 0
        self._latest: dict[str, ClusterRecord] = {}
        self._lines: dict[str, LineLimit] = defaultdict(lambda: LineLimit(period=_EVERY))

    def serve(self, port: int, address: str) -> None:
        """Serve the metrics to Prometheus. Raises OSError if the port is taken, or the address isn't this machine's."""
        start_http_server(port, addr=address, registry=self.registry)

    def made(self, record: ClusterRecord, standing_by: bool) -> None:
        """Take a record that was made; while ``standing_by``, the record is not published."""
        cluster, before = record.cluster, self._latest.get(record.cluster)
        self.standing_by.set(standing_by)
        self._latest[cluster] = record
        self._age.labels(cluster).set(_age(record) if record.newest_snapshot_at else math.nan)
        for name in ("reporting", "stale", "missing"):
            self._brokers.labels(cluster, name).set(getattr(record, name))
        self._volumes.labels(cluster).set(record.volume_count)
        self._capacity.labels(cluster).set(record.capacity)
        self._consumed.labels(cluster).set(record.consumed)
        self._factor.labels(cluster).set(1.0 if record.smallest_factor is None else record.smallest_factor)
        # A change of the number of brokers is logged immediately.
        if self._lines[cluster].passes() or before is None or _counts(before) != _counts(record):
            self._log(record)

    def batch(self, query: str, progress: Mapping[str, Any]) -> None:
        """Take the progress of a batch; the caller passes each batch once, in order."""
        left = sum(map(behind, progress["sources"]))
        self._batches.labels(query).inc()
        self._rows.labels(query).inc(progress["numInputRows"])
        if left > _LARGE:
            log.info("query %s: %s records are not read yet", query, f"{left:,}")
        if query == DEAD_LETTERS:
            refused = int(progress["observedMetrics"].get(DEAD_LETTERS, {DEAD_LETTERS: 0})[DEAD_LETTERS])
            self._refused.inc(refused)
            self._refused_so_far += refused
        self._seconds.labels(query).set(progress["durationMs"].get("triggerExecution", 0) / 1000)
        self._behind.labels(query).set(left)
        # A query has one stateful operator at most (docs/adr/0010).
        for operator in progress["stateOperators"][:1]:
            self._state_rows.labels(query).set(operator["numRowsTotal"])
            self._state_bytes.labels(query).set(operator["memoryUsedBytes"])

    def _log(self, record: ClusterRecord) -> None:
        log.info(
            "cluster %s: %d brokers report, %d stale, %d missing; %d volumes, %s of %s bytes; factor %s; "
            "run %d, record %d, latest snapshot %s old; %d refused so far",
            printable(record.cluster), *_counts(record)[:3], record.volume_count,
            f"{record.consumed:,}", f"{record.capacity:,}",
            "-" if record.smallest_factor is None else show_factor(record.smallest_factor),
            record.run, record.sequence, show_seconds(_age(record)), self._refused_so_far,
        )  # fmt: skip


def _counts(record: ClusterRecord) -> tuple[int, int, int, int]:
    return record.reporting, record.stale, record.missing, record.offline


def _age(record: ClusterRecord) -> float:
    """Return the seconds from the latest snapshot to the record's computation; 0 if there is no snapshot."""
    latest = record.newest_snapshot_at or record.computed_at
    return (record.computed_at - latest).total_seconds()


# ---- Spark's progress of a batch --------------------------------------------------------------------


def offsets(reported: Any) -> dict[tuple[str, str], int]:
    """Return the offsets by topic and partition, from Spark's JSON as text or decoded.

    The result is empty for null, as in a batch that Spark repeats after a restart.
    """
    topics = json.loads(reported) if isinstance(reported, str) else reported
    return {(topic, p): offset for topic, parts in (topics or {}).items() for p, offset in parts.items()}


def behind(source: Mapping[str, Any]) -> int:
    """Return how many records of a source in a query's progress are not read yet."""
    end, latest = offsets(source.get("endOffset")), offsets(source.get("latestOffset"))
    return sum(max(0, offset - end.get(at, 0)) for at, offset in latest.items())


def read_all(progress: Mapping[str, Any]) -> bool:
    """Return whether a query has read all records that existed; False if a repeated batch doesn't have the offsets."""
    return all(offsets(source.get("latestOffset")) and not behind(source) for source in progress["sources"])
