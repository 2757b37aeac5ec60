"""Turns Kafka's rows of the snapshots topic into columns, each with the reason if the snapshot is refused.

Spark does this in SQL (sql/parse.sql), so that no row passes through Python (docs/adr/0012). The rules are those of
``quotahost.records.snapshot``. Accepted snapshots go on to ``aggregate``, refused ones to
:mod:`quotahost.pipeline.dead_letters`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from quotahost.pipeline.spark.resources import sql
from quotahost.records.codec import REASONS
from quotahost.records.fields import MAX_NAME
from quotahost.records.snapshot import MAX_BYTES, MAX_VOLUMES

#: A limit as it is on the wire; both fields null is none.
LIMIT: Final = "STRUCT<type: STRING, level: BIGINT>"
_VOLUME: Final = (
    f"STRUCT<volumeName: STRING, capacity: BIGINT, consumed: BIGINT, softLimit: {LIMIT}, hardLimit: {LIMIT}>"
)
#: The fields of a snapshot that count, as ``quotahost.records.codec`` reads them; others are ignored.
SNAPSHOT: Final = (
    "STRUCT<schemaVersion: BIGINT, clusterId: STRING, brokerId: STRING, snapshotAt: STRING, "
    f"softLimit: {LIMIT}, hardLimit: {LIMIT}, volumes: ARRAY<{_VOLUME}>, offlineLogDirs: ARRAY<STRING>, "
    "_corrupt: STRING>"
)
#: Why a record is refused: as a broker would, and ``time``: it says that it was taken more than an hour
#   after it was
#: written, as Kafka itself refuses a record's timestamp (``message.timestamp.after.max.ms``).
REFUSALS: Final = (*REASONS, "time")
_DATE_TIME: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)


def parse(raw: DataFrame) -> DataFrame:
    """Kafka's rows as snapshots, batch or stream, in Spark's own functions.

    Args:
        raw: key and value (binary), topic, partition, offset, timestamp, as the Kafka source gives them.

    Returns:
        topic, partition, offset, timestamp, value; ``broker`` (the key); ``at`` (snapshotAt); ``seen``, the time by
        which the pipeline orders and ages it: ``at``, but never later than Kafka's timestamp; ``removed`` for a
        tombstone; ``s``, the snapshot as SNAPSHOT says, null for a tombstone; ``error``, one of REFUSALS, null for an
        accepted record.
    """
    return raw.sparkSession.sql(_parse_sql(), raw=raw)


def _parse_sql() -> str:
    bad = {side: _bad_limit(f"s.{side}Limit") for side in ("soft", "hard")}
    of_volume = {f"{side}_of_volume": _bad_limit(f"v.{side}Limit") for side in ("soft", "hard")}
    fields = {f"bad_{name}": text for name, text in (bad | of_volume).items()}
    limits = {"max_bytes": MAX_BYTES, "max_volumes": MAX_VOLUMES, "max_name": MAX_NAME}
    return sql("parse", schema=SNAPSHOT, date_time=_DATE_TIME, **fields, **limits)


def _bad_limit(limit: str) -> str:
    """Whether one has a type without a level, an unknown type, or a level out of range; ``{}`` is none."""
    return (
        f"coalesce(({limit}.type IS NULL) <> ({limit}.level IS NULL) OR {limit}.level < 0 "
        f"OR {limit}.type NOT IN ('ConsumedBytes', 'MinFreeBytes', 'MinFreePercentage') "
        f"OR ({limit}.type = 'MinFreePercentage' AND {limit}.level > 100), FALSE)"
    )


def resolved(parsed: DataFrame, cluster: str) -> DataFrame:
    """The accepted records, with the limits of each volume: its own, else its broker's.

    The rule is of proposal 035, Metrics Snapshot, note 2.

    Args:
        parsed: as :func:`parse` gives it.
        cluster: that of snapshots that don't name theirs.

    Returns:
        topic, partition, offset, timestamp, cluster, broker, at, removed, offline, and ``volumes`` of name,
        capacity, consumed, soft, hard, where no limit is null.
    """
    return parsed.sparkSession.sql(sql("resolved"), args={"cluster": cluster}, parsed=parsed)
