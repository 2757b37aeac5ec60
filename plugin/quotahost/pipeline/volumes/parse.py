"""From Kafka's rows of the snapshots topic to columns; a record that is refused gets its reason in ``error``.

The rules are those of :mod:`quotahost.records.codec` and :mod:`quotahost.records.snapshot`, by which brokers read the
same topic: ``sql/parse.sql`` states them in Spark's functions, because Python for each row would be far too slow.
Good rows go on to :mod:`quotahost.pipeline.volumes.aggregate` and to the history, the others to
:mod:`quotahost.pipeline.dead_letters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame

from quotahost.model.volumes import MAX_TOPICS
from quotahost.pipeline.spark.frames import seen_at, sql
from quotahost.pipeline.spark.strict_json import OF_WHOLE_NUMBERS, is_json, misread, plainly, suspect
from quotahost.records.codec import REASONS
from quotahost.records.fields import DATE_TIME, MAX_NAME, TOPIC
from quotahost.records.snapshot import MAX_BYTES, MAX_VOLUMES

#: A limit as in the record; without a limit both fields are null.
LIMIT: Final = "STRUCT<type: STRING, level: BIGINT>"
_VOLUME: Final = (
    f"STRUCT<volumeName: STRING, capacity: BIGINT, consumed: BIGINT, softLimit: {LIMIT}, hardLimit: {LIMIT}, "
    "topics: ARRAY<STRING>>"
)
#: The fields of a snapshot that are read, as ``quotahost.records.snapshot`` reads them; others are ignored.
SNAPSHOT: Final = (
    "STRUCT<schemaVersion: BIGINT, clusterId: STRING, brokerId: STRING, snapshotAt: STRING, ageMs: BIGINT, "
    f"softLimit: {LIMIT}, hardLimit: {LIMIT}, volumes: ARRAY<{_VOLUME}>, offlineLogDirs: ARRAY<STRING>, "
    "_corrupt: STRING>"
)
#: The reasons for which a record is refused: a broker's, and two more. ``time``: Kafka wrote it before OLDEST, by
#: Kafka's clock. ``cluster``: it names another cluster than its topic's.
REFUSALS: Final = (*REASONS, "time", "cluster")
#: There was no snapshot before: a machine that writes one has lost its clock.
OLDEST: Final = "2026-01-01 00:00:00"


def parse(
    raw: DataFrame, clusters: Mapping[str, str] | None = None, validity: timedelta = timedelta(minutes=1)
) -> DataFrame:
    """Kafka's rows as snapshots, batch or stream, in Spark's own functions.

    Args:
        raw: key and value (binary), topic, partition, offset, timestamp, as the Kafka source gives them.
        clusters: the cluster that each topic belongs to, by topic. A record that names another one is refused: who may
            write to one cluster's topic must not speak for another cluster. Without it, any cluster is taken.
        validity: how old a broker's newest snapshot may be.

    Returns:
        topic, partition, offset, timestamp, value; ``broker`` (the key); ``at`` (snapshotAt); ``seen``, by which
        snapshots are ordered and aged: when the volumes were read, by Kafka's clock (``quotahost.records.age``);
        ``removed``, true for a tombstone;
        ``cluster``, the record's own, else its topic's, null if neither is known;
        ``s``, the snapshot in the type SNAPSHOT, null for a tombstone; ``error``, one of REFUSALS, null for a good
        record.
    """
    of = list((clusters or {}).items())
    args = {f"topic{n}": topic for n, (topic, _) in enumerate(of)} | {f"id{n}": name for n, (_, name) in enumerate(of)}
    # A CASE of literals; a map out of JSON might be read again for each row.
    bound = f"CASE topic {' '.join(f'WHEN :topic{n} THEN :id{n}' for n in range(len(of)))} END"
    return raw.sparkSession.sql(_parse_sql(validity, bound if of else "CAST(NULL AS STRING)"), args=args, raw=raw)


def _parse_sql(validity: timedelta, bound: str) -> str:
    bad = {side: _bad_limit(f"s.{side}Limit") for side in ("soft", "hard")}
    of_volume = {f"{side}_of_volume": _bad_limit(f"v.{side}Limit") for side in ("soft", "hard")}
    fields = {f"bad_{name}": text for name, text in (bad | of_volume).items()}
    limits = {"max_bytes": MAX_BYTES, "max_volumes": MAX_VOLUMES, "max_name": MAX_NAME, "oldest": OLDEST}
    seen = seen_at("s.ageMs", "at", "timestamp", validity)
    fields |= {"bound": bound, "seen_at": seen, "plainly": plainly("text"), "is_json": is_json("text")}
    fields |= {"json_options": OF_WHOLE_NUMBERS}
    fields |= {"suspect": suspect("s", "text"), "misread": misread("text")}
    fields |= {"schema": SNAPSHOT, "date_time": DATE_TIME, "topic_name": TOPIC}
    return sql("parse", **fields, **limits, max_topics=MAX_TOPICS)


def _bad_limit(limit: str) -> str:
    """Whether a limit has a type without a level, an unknown type, or a level out of range; ``{}`` is no limit."""
    return (
        f"coalesce(({limit}.type IS NULL) <> ({limit}.level IS NULL) OR {limit}.level < 0 "
        f"OR {limit}.type NOT IN ('ConsumedBytes', 'MinFreeBytes', 'MinFreePercentage') "
        f"OR ({limit}.type = 'MinFreePercentage' AND {limit}.level > 100), FALSE)"
    )


def resolved(parsed: DataFrame) -> DataFrame:
    """The good records with each volume's limits: its own, else its broker's (proposal 035, Metrics Snapshot, note 2).

    Args:
        parsed: as :func:`parse` gives it.

    Returns:
        topic, partition, offset, timestamp, cluster, broker, at (Kafka's timestamp where the broker's clock was more
        than a day behind or an hour ahead), removed, offline, and ``volumes``: structs of name,
        capacity, consumed, soft, hard; a volume without a limit has null there.
    """
    return parsed.sparkSession.sql(sql("resolved"), parsed=parsed)
