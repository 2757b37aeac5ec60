"""Writes what each client used, by the minute, beside the history of volumes; ``quotahost replay`` reads it.

It lies in a folder of its own, the name of the history with ``-usage``: Spark takes all folders of one directory for
parts of the same table. The task ``publish-usage`` of the brokers says what there is: their busiest producers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline.history.writer import EVERY, KEEP, append

#: The columns, one row for each minute, broker and client. rate, demand and quota are bytes/s as in the records of
#: usage: the means, and the largest demand, null if the client would have used whatever it gets.
COLUMNS: Final = (
    "cluster STRING, broker STRING, user STRING, client STRING, at TIMESTAMP, rate DOUBLE, demand DOUBLE,"
    " quota DOUBLE, day DATE"
)
MINUTE: Final = timedelta(minutes=1)
#: A record that comes later than that is left out: until then a minute is kept in memory.
_LATE: Final = "5 minutes"


def place(directory: str) -> str:
    """Where the usage of a history lies."""
    return directory.rstrip("/") + "-usage"


def uses(usage: DataFrame, cluster: str) -> DataFrame:
    """Rows of COLUMNS, of producers only.

    Args:
        usage: the rows of ``shares.parse``; a stream or a batch.
        cluster: the id of the cluster of records that name none.
    """
    each = (
        usage.where("error IS NULL AND ts IS NOT NULL")
        .withWatermark("ts", _LATE)
        .select(
            F.coalesce("clusterId", F.lit(cluster)).alias("cluster"),
            F.col("brokerId").alias("broker"),
            "ts",
            F.explode("clients").alias("c"),
        )
        .where("c.quotaType = 'PRODUCE'")
    )
    minute = F.window("ts", f"{int(MINUTE.total_seconds())} seconds").alias("minute")
    of = each.groupBy(minute, "cluster", "broker", F.col("c.user").alias("user"), F.col("c.clientId").alias("client"))
    return of.agg(
        F.expr("avg(c.rate) AS rate"),
        F.expr("IF(count(c.demand) = count(1), max(c.demand), NULL) AS demand"),
        F.expr("max(c.quota) AS quota"),
    ).selectExpr(
        "cluster", "broker", "user", "client", "minute.start AS at", "rate", "demand", "quota",
        "date_from_unix_date(CAST(floor(unix_micros(minute.start) / 86400000000D) AS INT)) AS day",
    )  # fmt: skip


def start_usage(
    usage: DataFrame, cluster: str, directory: str, every: timedelta = EVERY, keep: timedelta = KEEP
) -> StreamingQuery:
    """Start to append the usage, each minute once, some minutes after it has passed.

    Args:
        usage: a stream of the rows of ``shares.parse``.
        cluster: as for :func:`uses`.
        directory: that of the history.
        every: how often a batch is written.
        keep: how long rows are seen.
    """
    return append(uses(usage, cluster), "quotahost-usage", place(directory), every, keep)
