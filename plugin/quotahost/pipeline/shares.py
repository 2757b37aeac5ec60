"""Shares of the cluster-wide client quotas, in Spark's own functions: from usage records to records of shares.

``parse`` reads the records of ``usage.topic``; of what it takes the caller keeps each broker's newest, and ``shares``
makes one record for each broker of it. It is what :mod:`quotahost.pipeline.max_min` says in plain Python, without
Python for each row, and reads its input once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame

from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.max_min import FLOOR, SHAVED
from quotahost.pipeline.spark.sinks import bring_forward, write
from quotahost.records.clients import MAX_BYTES, MAX_CLIENTS, MAX_NAMES
from quotahost.records.declaration import VERSION
from quotahost.records.fields import MAX_NAME, time_json

# TODO(merge) What is done with each batch of usage: divide the cluster quotas, publish the shares.


CLIENTS: Final = (
    "ARRAY<STRUCT<user: STRING, clientId: STRING, quotaType: STRING, rate: DOUBLE, demand: DOUBLE, "
    "quota: DOUBLE>>"
)  # fmt: skip


STATE: Final = f"clusterId STRING, brokerId STRING, ts TIMESTAMP, removed BOOLEAN, clients {CLIENTS}"


"""What ``shares`` reads: the newest of each broker."""


_USAGE: Final = (
    f"version INT, clusterId STRING, brokerId STRING, usageAt STRING, clients {CLIENTS}, _corrupt STRING"
)


_TIME: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})$"
)


_SKEW_SECONDS: Final = 60  # by which a broker's clock may be ahead of the record's own time


# The generator is a barrier: without it the optimizer copies the parse to each place where a field of it is
#   used.
_PARSE: Final = """
WITH parsed AS (
  SELECT key, value, topic, partition, offset, timestamp, try_validate_utf8(string(key)) AS k, u
  FROM {raw} LATERAL VIEW explode(array(from_json(
    if(octet_length(value) <= :bytes, try_validate_utf8(string(value)), NULL), :schema,
    map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_corrupt')))) AS u),
timed AS (
  SELECT *, if(u.usageAt RLIKE :time, try_to_timestamp(u.usageAt), NULL) AS at FROM parsed)
SELECT nullif(u.clusterId, '') AS clusterId, k AS brokerId, coalesce(at, timestamp) AS ts, value IS NULL AS removed,
  coalesce(u.clients, array()) AS clients,
  CASE
    WHEN k IS NULL THEN 'key: the record has none'
    WHEN value IS NULL THEN NULL
    WHEN octet_length(value) > :bytes THEN 'size: the record is too large'
    WHEN u.version <> :version THEN 'version: another one'
    WHEN u IS NULL OR u._corrupt IS NOT NULL THEN 'json: malformed, or a field of another type'
    WHEN u.version IS NULL THEN 'version: missing'
    WHEN u.brokerId IS NULL OR u.brokerId <> k THEN 'key: it is not the brokerId'
    WHEN char_length(k) > :name OR char_length(u.clusterId) > :name THEN 'schema: an id is too long'
    WHEN at IS NULL THEN 'schema: usageAt is missing or no date-time'
    WHEN at > timestamp + make_interval(0, 0, 0, 0, 0, 0, :skew) THEN 'schema: usageAt is in the future'
    WHEN u.clients IS NULL THEN 'schema: clients are missing'
    WHEN size(u.clients) > :clients THEN 'schema: too many clients'
    WHEN exists(u.clients, c -> NOT coalesce(
        c.user IS NOT NULL AND c.clientId IS NOT NULL AND c.quotaType IN ('PRODUCE', 'FETCH')
        AND c.rate >= 0 AND c.rate < double('Infinity') AND c.quota > 0 AND c.quota < double('Infinity')
        AND (c.demand IS NULL OR c.demand >= 0 AND c.demand < double('Infinity')), false))
      THEN 'schema: a client lacks a name or type, or has a wrong number'
    WHEN size(array_distinct(transform(u.clients, c -> struct(c.user, c.clientId, c.quotaType)))) <> size(u.clients)
      THEN 'schema: a client is listed more than once'
    WHEN aggregate(u.clients, 0L, (sum, c) -> sum + octet_length(c.user) + octet_length(c.clientId)) > :names
      THEN 'size: the names are too long'
  END AS error,
  key, value, topic, partition, offset, timestamp
FROM timed
"""


# Each broker adds a row without a client: their group holds all brokers, for the window to hand to every
#   client, and
# gives a broker its record where there is no client at all.
_SHARES: Final = """
WITH brokers AS (
  SELECT clusterId, brokerId, clients, ts >= timestamp_millis(:now - :validity) AS fresh
  FROM {state} WHERE NOT removed),
told AS (
  SELECT clusterId, brokerId, fresh, c
  FROM brokers LATERAL VIEW explode(array_append(if(fresh, clients, array()), NULL)) AS c),
grouped AS (
  SELECT clusterId, c.user, c.clientId, c.quotaType, min(c.quota) AS quota,
    sort_array(collect_list(struct(brokerId, fresh, c.rate, c.demand))) AS uses
  FROM told GROUP BY clusterId, c.user, c.clientId, c.quotaType),
rated AS (
  SELECT *, aggregate(uses, 0D, (sum, u) -> sum + coalesce(u.rate, 0D)) AS rate,
    coalesce(octet_length(user) + octet_length(clientId), 0) AS names,
    if(user IS NULL, transform(filter(uses, u -> u.fresh), u -> u.brokerId), NULL) AS freshHere,
    if(user IS NULL, transform(filter(uses, u -> NOT u.fresh), u -> u.brokerId), NULL) AS silentHere
  FROM grouped),
ranked AS (
  SELECT clusterId, user, clientId, quotaType, quota, uses, max(freshHere) OVER whole AS fresh,
    max(silentHere) OVER whole AS silent, row_number() OVER busiest AS rank,
    sum(names) OVER busiest AS names
  FROM rated
  WINDOW whole AS (PARTITION BY clusterId),
    busiest AS (PARTITION BY clusterId ORDER BY user IS NOT NULL, rate DESC, user, clientId, quotaType
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
floored AS (
  SELECT *, quota * :floor / (size(fresh) + size(silent)) AS floor,
    quota - quota * :floor / (size(fresh) + size(silent)) * (size(fresh) + size(silent)) AS rest
  FROM ranked WHERE rank <= :clients + 1 AND names <= :names),
wanting AS (
  SELECT *, transform(uses, u -> if(u.demand IS NULL, rest, least(greatest(u.demand - floor, 0D), rest))) AS wanted
  FROM floored),
levelled AS (
  SELECT *, aggregate(sort_array(wanted), named_struct('level', 0D, 'met', 0D, 'number', 0),
    (a, more) -> named_struct('level', greatest(a.level, (rest - a.met) / (size(wanted) - a.number)),
      'met', a.met + more, 'number', a.number + 1), a -> a.level) AS level
  FROM wanting),
spread AS (
  SELECT *, greatest(0D, rest - aggregate(wanted, 0D, (sum, more) -> sum + least(more, level)))
    / nullif(size(fresh), 0) AS over
  FROM levelled),
given AS (
  SELECT clusterId, rank, user, clientId, quotaType, quota, g.brokerId, g.share
  FROM spread LATERAL VIEW explode(if(user IS NULL,
    transform(concat(fresh, silent), b -> struct(b AS brokerId, 0D AS share)),
    concat(
      transform(arrays_zip(uses, wanted), z ->
        struct(z.uses.brokerId AS brokerId, (floor + least(z.wanted, level) + over) * :shaved AS share)),
      transform(array_except(fresh, transform(uses, u -> u.brokerId)), b ->
        struct(b AS brokerId, (floor + over) * :shaved AS share)),
      transform(silent, b -> struct(b AS brokerId, floor * :shaved AS share))))) AS g)
SELECT brokerId AS key, to_json(struct(:version AS version, clusterId, brokerId, :run AS run, :sequence AS sequence,
    :computedAt AS computedAt,
    transform(sort_array(collect_list(if(user IS NULL, NULL, struct(rank, user, clientId, quotaType, share, quota)))),
      s -> struct(s.user, s.clientId, s.quotaType, s.share, s.quota)) AS clients)) AS value
FROM given GROUP BY clusterId, brokerId
"""


def parse(raw: DataFrame) -> DataFrame:
    """Records of ``usage.topic`` as columns, one row each; batch or stream.

    Args:
        raw: as Spark's Kafka source gives them: key, value, topic, partition, offset, timestamp.

    Returns:
        The columns of STATE; ``error``, null for what is taken, else ``REASON: text``; and those of ``raw``. A
        null value is a tombstone: ``removed``.
    """
    args = {
        "schema": _USAGE,
        "time": _TIME,
        "skew": _SKEW_SECONDS,
        "bytes": MAX_BYTES,
        "version": VERSION,
        "name": MAX_NAME,
        "names": MAX_NAMES,
        "clients": MAX_CLIENTS,
    }
    return raw.sparkSession.sql(_PARSE, args=args, raw=raw)


def arguments(now_ms: int, validity_ms: int, run: int, sequence: int) -> dict[str, Any]:
    """What ``shares`` needs to know; times in ms, ``now_ms`` and ``run`` since 1970."""
    computed_at = time_json(datetime.fromtimestamp(now_ms / 1000, UTC))
    return {
        "now": now_ms,
        "validity": validity_ms,
        "run": run,
        "sequence": sequence,
        "computedAt": computed_at,
    }


def shares(state: DataFrame, args: dict[str, Any]) -> DataFrame:
    """One record of shares (``key``, ``value``) for each broker that is not removed, in no order.

    Usage older than validity counts no more; its broker keeps the floor. A batch, not a stream.

    Args:
        state: columns as in STATE, one row for each broker of each cluster.
        args: from ``arguments``.
    """
    fixed = {
        "floor": FLOOR,
        "shaved": SHAVED,
        "version": VERSION,
        "clients": MAX_CLIENTS,
        "names": MAX_NAMES,
    }
    return state.sparkSession.sql(_SHARES, args={**fixed, **args}, state=state)


_MS: Final = timedelta(milliseconds=1)


class SharesPublisher:
    """Takes the newest usage of all brokers and publishes a record of shares for each broker.

    While a pipeline that was launched later publishes, nothing is: two would give away each quota twice.
    """

    def __init__(
        self, topic: str, client: Mapping[str, str], validity: timedelta, leadership: Leadership
    ) -> None:
        """``client`` is Kafka's, in Java's names; usage older than ``validity`` counts no more."""
        self._topic, self._validity, self._leadership = topic, validity, leadership
        self._client = client

    def __call__(self, usage: DataFrame, batch: int) -> None:
        """A batch of ``sql/usage.sql``, for ``foreachBatch``."""
        if self._leadership.stands_by():
            bring_forward(usage)
            return
        now = time.time_ns() // 1_000_000
        found = shares(usage.coalesce(1), arguments(now, self._validity // _MS, self._leadership.run, batch))
        write(found, self._topic, self._client)
