"""Shares of the cluster-wide client quotas: from the brokers' usage records to one record of shares for each broker.

``parse`` judges the records of the usage topic. The query in :mod:`quotahost.pipeline.queries` keeps each broker's
newest record, and ``shares`` divides every quota among the brokers by their demand, max-min fair (KIP-13 left the
division open). All of it runs in Spark's own functions, without Python for each row. ``SharesPublisher`` writes the
result to the shares topic, from which the supplier ``cluster-quota`` of each broker takes its limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame

from quotahost.pipeline.kafka.clock import KafkaClock
from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.spark.resources import sql
from quotahost.pipeline.spark.sinks import bring_forward, kafka_sink
from quotahost.records.clients import MAX_BYTES, MAX_CLIENTS, MAX_NAMES
from quotahost.records.declaration import VERSION
from quotahost.records.fields import DATE_TIME, MAX_NAME, time_json

#: The share of an equal part that every broker keeps, so that a client can begin anywhere.
FLOOR: Final = 0.05
#: Each share is reduced by this factor, so that the sum of the floats never exceeds the quota, in whatever order.
SHAVED: Final = 1 - 2**-32

_CLIENTS: Final = (
    "ARRAY<STRUCT<user: STRING, clientId: STRING, quotaType: STRING, rate: DOUBLE, demand: DOUBLE, quota: DOUBLE>>"
)
_USAGE: Final = f"version INT, clusterId STRING, brokerId STRING, usageAt STRING, clients {_CLIENTS}, _corrupt STRING"
_SKEW_SECONDS: Final = 60  # by which a broker's clock may be ahead of the record's own time
_MS: Final = timedelta(milliseconds=1)


def parse(raw: DataFrame, cluster: str = "") -> DataFrame:
    """Records of the usage topic as columns, one row each; batch or stream.

    Args:
        raw: as Spark's Kafka source gives them: key, value, topic, partition, offset, timestamp.
        cluster: that of the topic; a record that names another one is refused. With "" any is taken.

    Returns:
        ``clusterId``, ``brokerId``, ``ts``, ``removed`` (true for a tombstone, whose value is null), ``clients``;
        ``error``, null for a record that is taken, else ``REASON: text``; and the columns of ``raw``.
    """
    args = {
        "schema": _USAGE,
        "time": DATE_TIME,
        "skew": _SKEW_SECONDS,
        "bytes": MAX_BYTES,
        "version": VERSION,
        "name": MAX_NAME,
        "names": MAX_NAMES,
        "clients": MAX_CLIENTS,
        "cluster": cluster,
    }
    return raw.sparkSession.sql(sql("usage_parse"), args=args, raw=raw)


def shares(
    usage: DataFrame, now_ms: int, validity: timedelta, run: int, sequence: int, expiry: timedelta = timedelta(days=1)
) -> DataFrame:
    """One record of shares (``key``, ``value``) for each broker that is not removed, in no order. A batch, no stream.

    Args:
        usage: the columns of :func:`parse` up to ``clients``, one row for each broker of each cluster.
        now_ms: the time of the computation, in ms since the epoch.
        validity: older usage is ignored; its broker keeps the floor.
        run: the pipeline's run, for the record.
        sequence: the batch's number, for the record.
        expiry: a broker whose usage is older has left, and keeps nothing.
    """
    args: dict[str, Any] = {
        "now": now_ms,
        "validity": validity // _MS,
        "expiry": expiry // _MS,
        "run": run,
        "sequence": sequence,
        "computedAt": time_json(datetime.fromtimestamp(now_ms / 1000, UTC)),
        "floor": FLOOR,
        "shaved": SHAVED,
        "version": VERSION,
        "clients": MAX_CLIENTS,
        "names": MAX_NAMES,
    }
    return usage.sparkSession.sql(sql("shares"), args=args, usage=usage)


class SharesPublisher:
    """Takes the newest usage of all brokers with each batch, and publishes a record of shares for each broker.

    It publishes nothing while another pipeline leads: two would give away each quota twice.
    """

    def __init__(
        self,
        topic: str,
        client: Mapping[str, str],
        validity: timedelta,
        leadership: Leadership,
        clock: KafkaClock,
        expiry: timedelta,
    ) -> None:
        """``client`` is Kafka's configuration, in Java's names; for the durations see :func:`shares`."""
        self._topic, self._client = topic, client
        self._validity, self._leadership = validity, leadership
        self._clock, self._expiry = clock, expiry

    def __call__(self, usage: DataFrame, batch: int) -> None:
        """Publish the shares of a batch of ``sql/usage.sql``; for ``foreachBatch``."""
        # Without a reading Spark keeps no state, and the query failed with each batch while this pipeline stood by.
        if self._leadership.stands_by():
            bring_forward(usage)
            return
        now = self._clock.now()
        # The state has one partition. Spark learns that by coalesce, and doesn't shuffle the rows again.
        found = shares(usage.coalesce(1), now, self._validity, self._leadership.run, batch, self._expiry)
        kafka_sink(found.write, self._topic, self._client).save()
