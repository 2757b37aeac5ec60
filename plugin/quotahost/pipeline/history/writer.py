"""Writes every reading of every volume as a row of Parquet, in one folder for each day.

A reading is a volume of a snapshot. The history is optional, as it parses every snapshot a second time.
:mod:`quotahost.pipeline.history.store` finds the readings for ``quotahost report``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline.spark.frames import reached_at

#: How often a file is written. A file a minute would be 525,600 a year, whose names alone take 127 MB.
EVERY: Final = timedelta(minutes=5)
#: How long readings are seen.
KEEP: Final = timedelta(days=400)
#: The columns. capacity and consumed are bytes; soft and hard the consumption, in bytes, at which the volume reaches
#: that limit, null without one; day is that of ``at`` in UTC.
COLUMNS: Final = (
    "cluster STRING, broker STRING, volume STRING, at TIMESTAMP, capacity BIGINT, consumed BIGINT, soft BIGINT,"
    " hard BIGINT, topic STRING, partition INT, offset BIGINT, day DATE"
)


def readings(snapshots: DataFrame) -> DataFrame:
    """A row of COLUMNS for each volume of each snapshot; none for a tombstone.

    Args:
        snapshots: the rows of ``volumes.parse.resolved``.
    """
    # No filter: Spark would push it below the parse of the JSON, and parse a second time for it.
    each = snapshots.selectExpr("*", "explode(IF(removed, NULL, volumes)) AS v")
    return each.selectExpr(
        "cluster", "broker", "v.name AS volume", "at", "v.capacity AS capacity", "v.consumed AS consumed",
        f"{reached_at('v.soft', 'v.capacity')} AS soft", f"{reached_at('v.hard', 'v.capacity')} AS hard",
        "topic", "partition", "offset", f"{_DAY} AS day",
    )  # fmt: skip


# In UTC, whatever the time zone of the session is.
_DAY: Final = "date_from_unix_date(CAST(floor(unix_micros(at) / 86400000000D) AS INT))"


def start_history(
    snapshots: DataFrame, directory: str, every: timedelta = EVERY, keep: timedelta = KEEP
) -> StreamingQuery:
    """Start to append the readings to Parquet, each exactly once, in a folder for each day (``day=2026-11-21``).

    Args:
        snapshots: a stream of the rows of ``volumes.parse.resolved``.
        directory: where to write, any path that Hadoop knows; the folders of old days may be deleted. The query's
            checkpoint lies in it, as neither is of use without the other: after the loss of a checkpoint, Spark would
            number its batches from 0, and leave out those whose numbers the directory knows already.
        every: how often a batch is written, one file for each day of which it has readings.
        keep: readings that were written longer ago are no longer seen. Spark keeps the names of all files in one list,
            which would otherwise grow for ever.
    """
    return append(readings(snapshots), "quotahost-history", directory, every, keep)


def append(rows: DataFrame, name: str, directory: str, every: timedelta, keep: timedelta) -> StreamingQuery:
    """Start a query of this name that appends a stream's rows; the arguments are those of :func:`start_history`."""
    return (
        rows.coalesce(1)  # one file for each day of the batch: Spark's list of all files grows with each
        .writeStream.queryName(name)
        .format("parquet")
        .partitionBy("day")
        .option("path", directory)
        .option("checkpointLocation", f"{directory.rstrip('/')}/_checkpoint")
        .option("retention", f"{int(keep.total_seconds())}s")
        .trigger(processingTime=f"{int(every.total_seconds() * 1000)} milliseconds")
        .start()
    )
