"""The history on its disk: which days there are, and the rows that a question is about."""

from __future__ import annotations

import re
from datetime import UTC, date, timedelta
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from quotahost.pipeline.history.writer import COLUMNS
from quotahost.report.values import NoHistory, Question

_DAY: Final = re.compile(r"day=(\d{4}-\d\d-\d\d)")
_MOST_NAMES: Final = 10


def days(spark: SparkSession, directory: str) -> list[date]:
    """The days for which the history has a folder, oldest first.

    Raises:
        NoHistory: there is no such directory, or no day in it.
    """
    java: Any = spark
    path = java._jvm.org.apache.hadoop.fs.Path(directory)
    system = path.getFileSystem(java._jsc.hadoopConfiguration())
    if not system.exists(path):
        raise NoHistory(
            f"{directory} doesn't exist; the pipeline writes the history to the folder that it is given"
        )
    found = (_DAY.fullmatch(entry.getPath().getName()) for entry in system.listStatus(path))
    named = sorted(date.fromisoformat(match[1]) for match in found if match)
    if not named:
        raise NoHistory(f"{directory} holds no readings; the pipeline writes the first soon after its start")
    return named


def days_asked(spark: SparkSession, question: Question) -> list[date]:
    """Those of them that the question is about.

    Raises:
        NoHistory: none is; it says from when to when there are readings.
    """
    there = days(spark, question.directory)
    since = question.since.astimezone(UTC).date() if question.since else date.min
    last = (question.until - timedelta(microseconds=1)).astimezone(UTC).date() if question.until else date.max
    asked = [day for day in there if since <= day <= last]
    if not asked:
        raise NoHistory(
            f"no readings in that time: {question.directory} has them from {there[0]} to {there[-1]}"
        )
    return asked


def rows(spark: SparkSession, question: Question) -> DataFrame:
    """The readings asked for; folders of other days are not opened, and those deleted are not missed."""
    every = spark.read.schema(COLUMNS).option("ignoreMissingFiles", "true").parquet(question.directory)
    wanted = every
    if question.since is not None:
        since = question.since.astimezone(UTC)
        wanted = wanted.where((F.col("day") >= F.lit(since.date())) & (F.col("at") >= F.lit(since)))
    if question.until is not None:
        until = question.until.astimezone(UTC)
        wanted = wanted.where((F.col("day") <= F.lit(until.date())) & (F.col("at") < F.lit(until)))
    for condition in _names(question).values():
        wanted = wanted.where(condition)
    return wanted


def _names(question: Question) -> dict[str, Column]:
    asked = {"cluster": question.clusters, "broker": question.brokers, "volume": question.volumes}
    return {column: F.col(column).isin(list(names)) for column, names in asked.items() if names}


def nothing(spark: SparkSession, question: Question, asked: list[date]) -> NoHistory:
    """Why there is nothing: the name that the last day doesn't know, with those that it does."""
    every = spark.read.schema(COLUMNS).option("ignoreMissingFiles", "true").parquet(question.directory)
    day = every.where(F.col("day") == F.lit(asked[-1]))
    for column, condition in _names(question).items():
        if day.where(condition).limit(1).count() == 0:
            given = {"cluster": question.clusters, "broker": question.brokers, "volume": question.volumes}[
                column
            ]
            known = [
                row[0]
                for row in day.select(column).distinct().orderBy(column).limit(_MOST_NAMES + 1).collect()
            ]
            others = ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")
            return NoHistory(
                f"no readings of {column} {' or '.join(given)}; on {asked[-1]} there are those of {others or 'none'}"
            )
    return NoHistory("no readings fit all of what was asked for together")
