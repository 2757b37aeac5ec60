"""Writes the history as Parquet, in one folder for each day: every reading of every volume, and who used what.

1. A reading is a volume of a snapshot. ``quotahost report`` and ``replay`` read them (``quotahost.cli.lab.history``).
2. ``-usage`` has the rates of the busiest producers by the minute, for ``replay``. They come from the brokers' task
   ``publish-usage``.
3. ``-bytes`` has the bytes that the busiest clients wrote and read by the minute, from the same records, and
   ``-budgets`` the bytes that budgets of storage held, from the snapshots. ``quotahost quotas usage`` reads both.

Each but the first lies in a folder of its own, the name of the history with that ending: Spark takes all folders of one
directory for parts of the same table. The history is optional, as it parses every record once more for each of them.
"""

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline.frames import reached_at
from quotahost.records.budgets import MAX_BUDGETS, NAME

#: How often a file is written. A file a minute would be 525,600 a year, whose names alone take 127 MB.
EVERY: Final = timedelta(minutes=5)
#: How long readings are seen. Spark keeps the names of all files in one list, which would otherwise grow for ever.
KEEP: Final = timedelta(days=400)
#: The columns of readings. capacity and consumed are bytes; soft and hard the consumption in bytes at which the volume
#: reaches that limit, null without one; day is that of ``at`` in UTC.
COLUMNS: Final = (
    "cluster STRING, broker STRING, volume STRING, at TIMESTAMP, capacity BIGINT, consumed BIGINT, soft BIGINT,"
    " hard BIGINT, topic STRING, partition INT, offset BIGINT, day DATE"
)
#: The columns of usage, one row for each minute, broker, client. rate, demand and quota are bytes/s as in the records
#: of usage: the means, and the largest demand, null if the client would have used whatever it gets.
USAGE_COLUMNS: Final = (
    "cluster STRING, broker STRING, user STRING, client STRING, at TIMESTAMP, rate DOUBLE, demand DOUBLE,"
    " quota DOUBLE, day DATE"
)
#: The columns of bytes, one row for each minute, broker, client: the bytes that it wrote and read in that minute.
BYTES_COLUMNS: Final = (
    "cluster STRING, broker STRING, user STRING, client STRING, at TIMESTAMP, written DOUBLE, read DOUBLE, day DATE"
)
#: The columns of budgets, one row for each PART of the time, broker, budget: the mean of the bytes on that broker.
BUDGETS_COLUMNS: Final = "cluster STRING, broker STRING, budget STRING, at TIMESTAMP, bytes DOUBLE, day DATE"
MINUTE: Final = timedelta(minutes=1)
PART: Final = timedelta(minutes=10)
#: A record that comes later than that is left out: until then a minute is kept in memory.
_LATE: Final = "5 minutes"


def readings(snapshots: DataFrame) -> DataFrame:
    """A row of COLUMNS for each volume of each snapshot; none for a tombstone.

    ``snapshots`` are the rows of ``snapshots.resolved``.
    """
    # No filter: Spark would push it below the parse of the JSON, and parse a second time for it.
    volumes = snapshots.selectExpr("*", "explode(IF(removed, NULL, volumes)) AS v")
    return volumes.selectExpr(
        "cluster", "broker", "v.name AS volume", "at", "v.capacity AS capacity", "v.consumed AS consumed",
        f"{reached_at('v.soft', 'v.capacity')} AS soft", f"{reached_at('v.hard', 'v.capacity')} AS hard",
        "topic", "partition", "offset", _day("at"),
    )  # fmt: skip


def uses(usage: DataFrame, cluster: str) -> DataFrame:
    """Rows of USAGE_COLUMNS, of producers only.

    ``usage`` is the rows of ``shares.parse``; a stream or a batch; ``cluster`` is the id of the cluster of records that
    name none.
    """
    return _minutes(_clients(usage, cluster).where("c.quotaType = 'PRODUCE'")).agg(
        F.expr("avg(c.rate) AS rate"),
        F.expr("IF(count(c.demand) = count(1), max(c.demand), NULL) AS demand"),
        F.expr("max(c.quota) AS quota"),
    ).selectExpr(
        "cluster", "broker", "user", "client", "minute.start AS at", "rate", "demand", "quota",
        _day("minute.start"),
    )  # fmt: skip


def transfers(usage: DataFrame, cluster: str) -> DataFrame:
    """Rows of BYTES_COLUMNS; the arguments are those of :func:`uses`.

    A minute's bytes are those of its records, each of which tells what was moved in the 5 s before it at most.
    """

    def moved(quota_type: str) -> str:
        return f"coalesce(sum(IF(c.quotaType = '{quota_type}', c.bytes, NULL)), 0D)"

    moves = F.expr(f"{moved('PRODUCE')} AS written"), F.expr(f"{moved('FETCH')} AS read")
    return _minutes(_clients(usage, cluster)).agg(*moves).selectExpr(
        "cluster", "broker", "user", "client", "minute.start AS at", "written", "read", _day("minute.start")
    )  # fmt: skip


def _clients(usage: DataFrame, cluster: str) -> DataFrame:
    """A row for each client of each good record: cluster, broker, ts, and the entry ``c``."""
    good = usage.where("error IS NULL AND ts IS NOT NULL").withWatermark("ts", _LATE)
    of = F.coalesce("clusterId", F.lit(cluster)).alias("cluster")
    return good.select(of, F.col("brokerId").alias("broker"), "ts", F.explode("clients").alias("c"))


def _minutes(clients: DataFrame) -> GroupedData:
    minute = F.window("ts", f"{int(MINUTE.total_seconds())} seconds").alias("minute")
    return clients.groupBy(
        minute, "cluster", "broker", F.col("c.user").alias("user"), F.col("c.clientId").alias("client")
    )


def held(snapshots: DataFrame) -> DataFrame:
    """Rows of BUDGETS_COLUMNS.

    ``snapshots`` are the rows of ``snapshots.parse``, a stream or a batch. As for brokers
    (``quotahost.records.snapshot``), a wrong list of budgets counts as none.
    """
    wrong = (
        f"size(b) <> 2 OR NOT b[0] RLIKE r'\\A(?:{NAME.pattern})\\z' OR NOT b[1] RLIKE r'\\A[0-9]+\\z'"
        " OR try_cast(b[1] AS BIGINT) IS NULL"
    )
    # from_json gives the text of the number. The transform keeps Spark from reading the JSON again for each mention.
    lists = "from_json(s.budgets, 'ARRAY<ARRAY<STRING>>')"
    names = "size(array_distinct(transform(l, b -> b[0]))) = size(l)"
    good = f"size(l) <= {MAX_BUDGETS} AND NOT exists(l, b -> coalesce({wrong}, TRUE)) AND {names}"
    budgets = snapshots.where("error IS NULL").withWatermark("seen", _LATE).selectExpr(
        "coalesce(cluster, '') AS cluster", "broker", "seen",
        f"explode(transform(array({lists}), l -> IF({good}, l, NULL))[0]) AS b",
    )  # fmt: skip
    part = F.window("seen", f"{int(PART.total_seconds())} seconds").alias("part")
    parts = budgets.groupBy(part, "cluster", "broker", F.expr("b[0] AS budget"))
    return parts.agg(F.expr("avg(CAST(b[1] AS BIGINT)) AS bytes")).selectExpr(
        "cluster", "broker", "budget", "part.start AS at", "bytes", _day("part.start")
    )  # fmt: skip


def usage_place(directory: str) -> str:
    """Where the usage of a history lies."""
    return directory.rstrip("/") + "-usage"


def bytes_place(directory: str) -> str:
    """Where a history has the bytes that clients wrote and read."""
    return directory.rstrip("/") + "-bytes"


def budgets_place(directory: str) -> str:
    """Where a history has the bytes that budgets held."""
    return directory.rstrip("/") + "-budgets"


def _day(time: str) -> str:
    # In UTC, whatever the time zone of the session is.
    return f"date_from_unix_date(CAST(floor(unix_micros({time}) / 86400000000D) AS INT)) AS day"


def start_history(snapshots: DataFrame, directory: str, every: timedelta = EVERY) -> StreamingQuery:
    """Start to append the readings to Parquet, each exactly once, in a folder for each day (``day=2026-11-21``).

    Args:
        snapshots: a stream of the rows of ``snapshots.resolved``.
        directory: where to write, any path that Hadoop knows; the folders of old days may be deleted. The query's
            checkpoint lies in it, as neither is of use without the other: after the loss of a checkpoint, Spark would
            number its batches from 0, and leave out those whose numbers the directory knows already.
        every: how often a batch is written, one file for each day of which it has readings.
    """
    return _append(readings(snapshots), "quotahost-history", directory, every)


def start_usage(usage: DataFrame, cluster: str, directory: str, every: timedelta = EVERY) -> StreamingQuery:
    """Start to append the usage, each minute once, some minutes after it has passed.

    ``usage`` is a stream of the rows of ``shares.parse``, ``cluster`` is that of :func:`uses`, and the other arguments
    are those of :func:`start_history`.
    """
    return _append(uses(usage, cluster), "quotahost-usage", usage_place(directory), every)


def start_bytes(usage: DataFrame, cluster: str, directory: str, every: timedelta = EVERY) -> StreamingQuery:
    """Start to append what clients wrote and read, as :func:`start_usage`."""
    return _append(transfers(usage, cluster), "quotahost-bytes", bytes_place(directory), every)


def start_budgets(snapshots: DataFrame, directory: str, every: timedelta = EVERY) -> StreamingQuery:
    """Start to append what budgets held; ``snapshots`` is a stream of the rows of ``snapshots.parse``."""
    return _append(held(snapshots), "quotahost-budgets", budgets_place(directory), every)


def _append(rows: DataFrame, name: str, directory: str, every: timedelta) -> StreamingQuery:
    # One file for each day of the batch: Spark's list of all files grows with each.
    writer = rows.coalesce(1).writeStream.queryName(name).format("parquet").partitionBy("day")
    places = {"path": directory, "checkpointLocation": f"{directory.rstrip('/')}/_checkpoint"}
    writer = writer.options(**places, retention=f"{int(KEEP.total_seconds())}s")
    return writer.trigger(processingTime=f"{int(every.total_seconds() * 1000)} milliseconds").start()
