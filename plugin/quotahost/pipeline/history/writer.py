"""Every reading of every volume, as rows of Parquet: what ``quotahost report`` draws from."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

EVERY: Final = timedelta(
    minutes=5
)  # a year at a minute would be 525,600 files, whose names alone take 127 MB
KEEP: Final = timedelta(days=400)

# Bytes are bytes; soft and hard are the consumption at which the limit is reached, null is none.
COLUMNS: Final = (
    "cluster STRING, broker STRING, volume STRING, at TIMESTAMP, capacity BIGINT, consumed BIGINT, soft BIGINT,"
    " hard BIGINT, topic STRING, partition INT, offset BIGINT, day DATE"
)


def readings(snapshots: DataFrame) -> DataFrame:
    """A row of COLUMNS for each volume of each snapshot; a removed broker's record has none.

    Args:
        snapshots: the pipeline's parsed good records: cluster, broker, at, removed, volumes, topic, partition,
            offset. ``volumes`` have their limits resolved (proposal 035, snapshot note 2).
    """
    # No filter: Spark would push it below the parse of the JSON, and parse again for it.
    each = snapshots.selectExpr("*", "explode(IF(removed, NULL, volumes)) AS v")
    return each.selectExpr(
        "cluster", "broker", "v.name AS volume", "at", "v.capacity AS capacity", "v.consumed AS consumed",
        f"{_reached_at('v.soft')} AS soft", f"{_reached_at('v.hard')} AS hard",
        "topic", "partition", "offset", f"{_DAY} AS day",
    )  # fmt: skip


# In UTC whatever the session's time zone is.
_DAY: Final = "date_from_unix_date(CAST(floor(unix_micros(at) / 86400000000D) AS INT))"


def _reached_at(limit: str) -> str:
    """As quotahost.model.Limit.consumed_at, and no more than the capacity, as quotahost.plugins.policies.limits."""
    return f"""CASE {limit}.type
        WHEN 'ConsumedBytes' THEN least({limit}.level, v.capacity)
        WHEN 'MinFreeBytes' THEN v.capacity - least({limit}.level, v.capacity)
        WHEN 'MinFreePercentage' THEN CAST(v.capacity AS DECIMAL(20, 0)) * (100 - {limit}.level) div 100
        END"""


def start_history(
    snapshots: DataFrame, directory: str, every: timedelta = EVERY, keep: timedelta = KEEP
) -> StreamingQuery:
    """Start to append the readings to Parquet, each exactly once, in a folder for each day (``day=2026-11-21``).

    Args:
        snapshots: as for ``readings``, a stream.
        directory: where to write, any path that Hadoop knows; the folders of old days may be deleted. The query's
            checkpoint lies in it, as one is no good without the other: to a lost checkpoint Spark answers by
            counting batches from 0, and leaves out those whose numbers the directory knows already.
        every: how often a batch is written. Each is one file for each day that it has readings of.
        keep: readings written longer ago than this are no longer seen. Spark keeps the names of all files in one
            list, which would otherwise grow for ever.
    """
    return (
        readings(snapshots)
        .coalesce(1)
        .writeStream.queryName("quotahost-history")
        .format("parquet")
        .partitionBy("day")
        .option("path", directory)
        .option("checkpointLocation", f"{directory.rstrip('/')}/_checkpoint")
        .option("retention", f"{int(keep.total_seconds())}s")
        .trigger(processingTime=f"{int(every.total_seconds() * 1000)} milliseconds")
        .start()
    )
