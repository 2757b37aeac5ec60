"""The shares' query divides cluster-wide quotas by demand, and publishes one record of shares for each broker.

1. ``parse`` judges the records of the usage topic; the query in :mod:`quotahost.pipeline.queries` keeps each broker's
   latest record.
2. ``shares`` divides each quota among the brokers by their demand, max-min fair (KIP-13 left the division open).
3. ``SharesPublisher`` writes the result to the topic of the supplier ``cluster-quota``.

A broker reads only the partition of its own record, and a record with unchanged shares is written only every few
seconds. So what a broker reads doesn't grow with the cluster; docs/benchmarks.md has figures.
"""

import json
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame

from quotahost.pipeline.clock import KafkaClock
from quotahost.pipeline.frames import bring_forward, kafka_sink, seen_at, sql
from quotahost.pipeline.leadership import Leadership
from quotahost.pipeline.options import Options
from quotahost.pipeline.snapshots import OPTIONS, is_json, more_braces
from quotahost.records.codec import VERSION
from quotahost.records.fields import DATE_TIME, MAX_NAME, MS, time_json
from quotahost.records.topics import SHARES
from quotahost.records.usage import MAX_BYTES, MAX_CLIENTS, MAX_NAMES

#: Every broker keeps this fraction of an equal part, so that a client can start on any broker.
FLOOR: Final = 0.05
#: Each share is multiplied by this factor, so that the sum of the floats never exceeds the quota, in any order.
SHAVED: Final = 1 - 2**-32
#: A broker that doesn't report a client gets a share in steps of an equal part divided by this, so it rarely changes.
STEPS: Final = 8
#: The most bytes of a client's two names together; a client with longer names has an equal part on each broker.
MAX_CLIENT: Final = 2048
#: An unchanged record is written again after this time, or after a quarter of ``validity`` if that is shorter.
REFRESH: Final = timedelta(seconds=5)

_CLIENTS: Final = (
    "ARRAY<STRUCT<user: STRING, clientId: STRING, quotaType: STRING, rate: DOUBLE, demand: DOUBLE, quota: DOUBLE,"
    " bytes: DOUBLE>>"
)
# The version is a DOUBLE, so that 1.0 is read as 1, as brokers read it.
_USAGE: Final = (
    f"version DOUBLE, clusterId STRING, brokerId STRING, usageAt STRING, clients {_CLIENTS}, _corrupt STRING"
)
_NEWS: Final = "SELECT key, partition, value FROM {found} WHERE array_contains(from_json(:news, 'ARRAY<STRING>'), key)"


def parse(raw: DataFrame, cluster: str, validity: timedelta = timedelta(minutes=1)) -> DataFrame:
    """Return a row for each record of the usage topic, which belongs to ``cluster``; ``raw`` is a batch or a stream.

    Returns:
        ``clusterId``, ``brokerId``, ``ts`` (when the rates were measured, by Kafka's clock), ``removed`` (true for a
        tombstone), ``clients``; ``error``, null for a record that is taken, else the reason; the columns of ``raw``.
    """
    args: dict[str, Any] = {"schema": _USAGE, "cluster": cluster, "time": DATE_TIME, "version": VERSION}
    args |= {"bytes": MAX_BYTES, "name": MAX_NAME, "names": MAX_NAMES, "clients": MAX_CLIENTS}
    value = "string(value)"
    text = sql(
        "usage_parse",
        seen_at=seen_at("NULL", validity),
        json_options=OPTIONS,
        more_braces=more_braces(value, "1 + size(u.clients)"),
        is_json=is_json(value),
    )
    return raw.sparkSession.sql(text, args=args, raw=raw)


def shares(
    usage: DataFrame,  # the columns of :func:`parse` up to ``clients``, one row for each broker of each cluster
    now_ms: int,  # Kafka's time, in ms since the epoch
    validity: timedelta,  # older usage is ignored; its broker keeps the floor
    run: int,  # the pipeline's run
    sequence: int,  # the number of the computation in the run
    *,
    expiry: timedelta,  # a broker whose usage is older has no share at all
    listed: Collection[str],  # ids of the brokers that the cluster has listed; other ids are a client's invention
    partitions: int,  # the number of partitions of the shares topic
) -> DataFrame:
    """Return one record of shares for each broker that is not removed, in any order; ``usage`` is a batch, no stream.

    A row has ``key``, ``partition`` (as :func:`quotahost.records.shares.partition_of`), ``value``, and ``hash``, which
    covers the cluster and the shares but not run, sequence and time of the record.
    """
    args: dict[str, Any] = {
        "now": now_ms, "validity": validity // MS, "expiry": expiry // MS,
        "listed": json.dumps(sorted(listed)), "partitions": partitions,
        "run": run, "sequence": sequence, "computedAt": time_json(datetime.fromtimestamp(now_ms / 1000, UTC)),
        "floor": FLOOR, "shaved": SHAVED, "steps": STEPS, "version": VERSION,
        "clients": MAX_CLIENTS, "names": MAX_NAMES, "name": MAX_CLIENT,
    }  # fmt: skip
    return usage.sparkSession.sql(sql("shares"), args=args, usage=usage)


class SharesPublisher:
    """Takes the latest usage of all brokers with each batch, and publishes the records of shares that have changed.

    While another pipeline leads, it publishes nothing: two pipelines would give away each quota twice.
    """

    def __init__(
        self, options: Options, leadership: Leadership, clock: KafkaClock, listed: Callable[[], Collection[str]],
        partitions: Callable[[], int], monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """Publish nothing yet.

        Each batch calls ``listed`` and ``partitions`` for the arguments of :func:`shares`; ``monotonic`` is in seconds.
        """
        self._options, self._leadership, self._clock, self._listed = options, leadership, clock, listed
        self._partitions, self._monotonic, self._client = partitions, monotonic, options.client()
        self._refresh = min(REFRESH, options.validity / 4).total_seconds()
        #: For each broker the hash of its record, the number of partitions, and the time when the record was written.
        self._written: dict[str, tuple[tuple[int, int], float]] = {}
        self._sequence = -1

    def __call__(self, usage: DataFrame, _: int) -> None:
        """Publish the shares of a batch of ``sql/usage.sql``; ``foreachBatch`` calls this method."""
        # Spark keeps a state only if its rows are read; otherwise each batch would fail while this pipeline stands by.
        stands_by, run = self._leadership.role()
        if stands_by:
            bring_forward(usage)
            self._written.clear()
            return
        partitions = self._partitions()
        # The batch's number can't serve as the sequence: it restarts at 0 when the query loses its checkpoint.
        self._sequence += 1
        # The state has one partition. coalesce tells Spark so, and Spark doesn't shuffle the rows again.
        found = shares(
            usage.coalesce(1), self._clock.now(), self._options.validity, run, self._sequence,
            expiry=self._options.expiry, listed=self._listed(), partitions=partitions,
        )  # fmt: skip
        self._write(found, partitions)

    def _write(self, found: DataFrame, partitions: int) -> None:
        now = self._monotonic()
        same = {broker: kept[0] for broker, kept in self._written.items() if now - kept[1] < self._refresh}
        # Two passes read the rows, so Spark caches them. An Observation would need one pass, but in a stream Spark may
        # never complete the Observation, and the query would hang.
        found.persist()
        try:
            # If the number of partitions has changed, all records are written: brokers read from their new partitions.
            told = {row["key"]: (row["hash"], partitions) for row in found.select("key", "hash").collect()}
            news = {broker for broker, said in told.items() if same.get(broker) != said}
            if news:
                # The broker ids are passed as one text, because a literal for each id would make the plan larger.
                rows = found.sparkSession.sql(_NEWS, args={"news": json.dumps(sorted(news))}, found=found)
                kafka_sink(rows.write, self._options.named(SHARES), self._client).save()
        finally:
            found.unpersist()
        # This is set after the write, so that the next batch retries records that could not be written.
        self._written = {each: (said, now) if each in news else self._written[each] for each, said in told.items()}
