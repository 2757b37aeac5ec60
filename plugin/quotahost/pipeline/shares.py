"""What goes into and comes out of ``pipeline/sql/shares.sql``, which divides cluster-wide quotas by demand: from
usage records to one record of shares for each broker, if it says news.

``parse`` judges the records of the usage topic. The query in :mod:`quotahost.pipeline.queries` keeps each broker's
newest record, and ``shares`` divides every quota among the brokers by their demand, max-min fair (KIP-13 left the
division open). ``SharesPublisher`` writes the result to the topic of the supplier ``cluster-quota``.

A broker reads only the partition of its own record, and a record that says the same as the one before isn't written
(but every few seconds): so what a broker reads doesn't grow with the cluster. docs/benchmarks.md has figures.
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

#: The share of an equal part that every broker keeps, so that a client can begin anywhere.
FLOOR: Final = 0.05
#: Each share is reduced by this factor, so that the sum of the floats never exceeds the quota, in whatever order.
SHAVED: Final = 1 - 2**-32
#: Where a client isn't used, its share goes by an equal part divided by this, so that its use elsewhere changes little.
STEPS: Final = 8
#: Bytes of both names of a client; one with longer names has an equal part everywhere.
MAX_CLIENT: Final = 2048
#: A record that says nothing new is written again after so long, and at the latest after a quarter of ``validity``.
REFRESH: Final = timedelta(seconds=5)

_CLIENTS: Final = (
    "ARRAY<STRUCT<user: STRING, clientId: STRING, quotaType: STRING, rate: DOUBLE, demand: DOUBLE, quota: DOUBLE,"
    " bytes: DOUBLE>>"
)
# A DOUBLE takes 1.0 for the version 1, as brokers do.
_USAGE: Final = (
    f"version DOUBLE, clusterId STRING, brokerId STRING, usageAt STRING, clients {_CLIENTS}, _corrupt STRING"
)
_NEWS: Final = "SELECT key, partition, value FROM {found} WHERE array_contains(from_json(:news, 'ARRAY<STRING>'), key)"


def parse(raw: DataFrame, cluster: str, validity: timedelta = timedelta(minutes=1)) -> DataFrame:
    """Records of the usage topic, which belongs to ``cluster``, as columns, one row each; batch or stream.

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
    run: int,  # the pipeline's
    sequence: int,  # the number of the computation in its run
    *,
    expiry: timedelta,  # a broker whose usage is older has no share at all
    known: Collection[str],  # ids of the brokers that the cluster has listed; others are a stranger's invention
    partitions: int,  # of the shares topic
) -> DataFrame:
    """One record of shares for each broker that is not removed, in no order. A batch, no stream.

    It has ``key``, ``partition`` (as :func:`quotahost.records.shares.partition_of`), ``value``, and ``hash`` of what
    the record says, apart from when it was computed.
    """
    args: dict[str, Any] = {
        "now": now_ms, "validity": validity // MS, "expiry": expiry // MS,
        "known": json.dumps(sorted(known)), "partitions": partitions,
        "run": run, "sequence": sequence, "computedAt": time_json(datetime.fromtimestamp(now_ms / 1000, UTC)),
        "floor": FLOOR, "shaved": SHAVED, "steps": STEPS, "version": VERSION,
        "clients": MAX_CLIENTS, "names": MAX_NAMES, "name": MAX_CLIENT,
    }  # fmt: skip
    return usage.sparkSession.sql(sql("shares"), args=args, usage=usage)


class SharesPublisher:
    """Takes the newest usage of all brokers with each batch, and publishes the records of shares that say news.

    It publishes nothing while another pipeline leads: two would give away each quota twice.
    """

    def __init__(
        self, options: Options, leadership: Leadership, clock: KafkaClock, known: Callable[[], Collection[str]],
        partitions: Callable[[], int], monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """Publishes nothing yet.

        ``known`` and ``partitions`` are asked with each batch, for what :func:`shares` takes; ``monotonic`` in seconds.
        """
        self._options, self._leadership, self._clock, self._known = options, leadership, clock, known
        self._partitions, self._monotonic, self._client = partitions, monotonic, options.client()
        self._refresh = min(REFRESH, options.validity / 4).total_seconds()
        #: By broker what its record says, as its hash and the number of partitions, and when it was written.
        self._written: dict[str, tuple[tuple[int, int], float]] = {}
        self._sequence = -1

    def __call__(self, usage: DataFrame, _: int) -> None:
        """Publish the shares of a batch of ``sql/usage.sql``; for ``foreachBatch``."""
        # Without a reading Spark keeps no state, and the query would fail with each batch while this pipeline stood by.
        stands_by, run = self._leadership.role()
        if stands_by:
            bring_forward(usage)
            self._written.clear()
            return
        partitions = self._partitions()
        # Not the batch's number, which begins with 0 again where the query begins anew.
        self._sequence += 1
        # The state has one partition. Spark learns that by coalesce, and doesn't shuffle the rows again.
        found = shares(
            usage.coalesce(1), self._clock.now(), self._options.validity, run, self._sequence,
            expiry=self._options.expiry, known=self._known(), partitions=partitions,
        )  # fmt: skip
        self._write(found, partitions)

    def _write(self, found: DataFrame, partitions: int) -> None:
        now = self._monotonic()
        same = {broker: kept[0] for broker, kept in self._written.items() if now - kept[1] < self._refresh}
        # Kept for two passes, which would compute it twice. An Observation would need one pass, but in a stream Spark
        # may never complete it, and the query hangs.
        found.persist()
        try:
            # With other partitions all is news: brokers look for their records where these belong now.
            told = {row["key"]: (row["hash"], partitions) for row in found.select("key", "hash").collect()}
            news = {broker for broker, said in told.items() if same.get(broker) != said}
            if news:
                # One text instead of a literal for each broker, which would make the plan larger with each.
                rows = found.sparkSession.sql(_NEWS, args={"news": json.dumps(sorted(news))}, found=found)
                kafka_sink(rows.write, self._options.named(SHARES), self._client).save()
        finally:
            found.unpersist()
        # Only now: what could not be written is written with the next batch.
        self._written = {each: (said, now) if each in news else self._written[each] for each, said in told.items()}
