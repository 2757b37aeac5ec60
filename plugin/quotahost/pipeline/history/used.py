"""Reads what the busiest clients used, for ``quotahost replay``: in parts of the time that are whole minutes."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from quotahost.pipeline.history.store import within
from quotahost.pipeline.history.usage import COLUMNS, MINUTE, place
from quotahost.report.values import ClientUse, Report, Use

MOST: Final = 200_000  # rows that this process takes
MOST_CLIENTS: Final = 500
_CLIENT: Final = ("cluster", "user", "client")


def with_clients(spark: SparkSession, found: Report, most: int = MOST) -> Report:
    """The same with the busiest clients of its time; unchanged where the history has no usage of it."""
    path = place(found.question.directory)
    if not _exists(spark, path):
        return found
    rows = _asked(spark.read.schema(COLUMNS).option("ignoreMissingFiles", "true").parquet(path), found)
    rates = rows.groupBy(*_CLIENT).agg(F.expr("sum(rate) AS total"), F.expr("count(*) AS minutes"))
    busiest = rates.orderBy(F.desc("total"), *_CLIENT).limit(MOST_CLIENTS).collect()
    if not busiest:
        return found
    minutes = -(-sum(row["minutes"] for row in busiest) // most)
    width = minutes * MINUTE.total_seconds()
    names = F.struct(*_CLIENT).isin([F.struct(*(F.lit(row[name]) for name in _CLIENT)) for row in busiest])
    return replace(found, clients=_clients(rows.where(names), width))


def _exists(spark: SparkSession, directory: str) -> bool:
    java: Any = spark
    path = java._jvm.org.apache.hadoop.fs.Path(directory)
    return bool(path.getFileSystem(java._jsc.hadoopConfiguration()).exists(path))


def _asked(rows: DataFrame, found: Report) -> DataFrame:
    question = replace(found.question, since=found.since, until=None)
    wanted = within(rows, question).where(F.col("at") <= F.lit(found.until))
    return wanted.where(F.col("cluster").isin(list(question.clusters))) if question.clusters else wanted


def _clients(rows: DataFrame, width: float) -> tuple[ClientUse, ...]:
    part = F.expr(f"bigint(floor(unix_micros(at) / {width * 1e6:.0f}D))").alias("part")
    parts = rows.groupBy(*_CLIENT, "broker", part).agg(
        F.expr("avg(rate) AS rate"),
        F.expr("IF(count(demand) = count(1), max(demand), NULL) AS demand"),
        F.expr("max(quota) AS quota"),
    )
    collected = sorted(parts.collect(), key=lambda row: (*row[:3], row["part"], row["broker"]))
    return tuple(
        ClientUse(*name, width, tuple(_use(row, width) for row in of))
        for name, of in groupby(collected, key=lambda row: (row["cluster"], row["user"], row["client"]))
    )


def _use(row: Row, width: float) -> Use:
    return Use(row["part"] * width, row["broker"], row["rate"], row["demand"], row["quota"])
