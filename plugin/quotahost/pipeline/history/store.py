"""Finds the readings of the history that a question is about, and says which there are if none fits.

:mod:`quotahost.pipeline.history.writer` has written them, in one folder for each day.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, date, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quotahost.pipeline.history.writer import COLUMNS
from quotahost.report.values import NoHistory, Question
from quotahost.text import printable

_DAY: Final = re.compile(r"day=(\d{4}-\d\d-\d\d)")
_MOST_NAMES: Final = 10


def days(spark: SparkSession, directory: str) -> list[date]:
    """The days for which the history has a folder, oldest first.

    Raises:
        NoHistory: there is no such directory, or no folder of a day in it.
    """
    # By Hadoop's own file system, as the directory need not be on this machine.
    java: Any = spark
    path = java._jvm.org.apache.hadoop.fs.Path(directory)
    system = path.getFileSystem(java._jsc.hadoopConfiguration())
    if not system.exists(path):
        raise NoHistory(f"{directory} doesn't exist; name the folder that was given to the pipeline as --history")
    found = (_DAY.fullmatch(entry.getPath().getName()) for entry in system.listStatus(path))
    named = sorted(date.fromisoformat(match[1]) for match in found if match)
    if not named:
        raise NoHistory(f"{directory} holds no readings; the pipeline writes the first soon after its start")
    return named


def days_asked(spark: SparkSession, question: Question) -> list[date]:
    """The days that the question is about and the history has, oldest first.

    Raises:
        NoHistory: there is none; the message names the first and the last day with readings.
    """
    there = days(spark, question.directory)
    since = question.since.astimezone(UTC).date() if question.since else date.min
    # ``until`` is excluded: midnight belongs to the day before.
    last = (question.until - timedelta(microseconds=1)).astimezone(UTC).date() if question.until else date.max
    asked = [day for day in there if since <= day <= last]
    if not asked:
        raise NoHistory(f"no readings in that time: {question.directory} has them from {there[0]} to {there[-1]}")
    return asked


def rows(spark: SparkSession, question: Question) -> DataFrame:
    """The readings asked for. Folders of other days are not opened, and a folder may be deleted meanwhile."""
    wanted = within(_readings(spark, question), question)
    for column, names in _asked(question).items():
        wanted = wanted.where(F.col(column).isin(list(names)))
    return wanted


def within(wanted: DataFrame, question: Question) -> DataFrame:
    """The rows of the time that the question is about, by their ``at`` and ``day``."""
    if question.since is not None:
        since = question.since.astimezone(UTC)
        wanted = wanted.where((F.col("day") >= F.lit(since.date())) & (F.col("at") >= F.lit(since)))
    if question.until is not None:
        until = question.until.astimezone(UTC)
        wanted = wanted.where((F.col("day") <= F.lit(until.date())) & (F.col("at") < F.lit(until)))
    return wanted


def _asked(question: Question) -> dict[str, Collection[str]]:
    """The names asked for, by the column that has them."""
    names = {"cluster": question.clusters, "broker": question.brokers, "volume": question.volumes}
    return {column: asked for column, asked in names.items() if asked}


def no_readings(spark: SparkSession, question: Question, asked: list[date]) -> NoHistory:
    """The error where no reading fits: it names what the last day lacks, and what the last day has instead."""
    day = _readings(spark, question).where(F.col("day") == F.lit(asked[-1]))
    for column, names in _asked(question).items():
        if day.where(F.col(column).isin(list(names))).isEmpty():
            rows = day.select(column).distinct().orderBy(column).limit(_MOST_NAMES + 1).collect()
            others = ", ".join(printable(row[0]) for row in rows[:_MOST_NAMES]) + (
                ", ..." if len(rows) > _MOST_NAMES else ""
            )
            return NoHistory(
                f"no readings of {column} {' or '.join(names)}; on {asked[-1]} there are those of {others or 'none'}"
            )
    return NoHistory("no readings fit all of what was asked for together")


def _readings(spark: SparkSession, question: Question) -> DataFrame:
    # With a schema given, Spark opens no file to learn it; a file may go while it reads, as old days are deleted.
    return spark.read.schema(COLUMNS).option("ignoreMissingFiles", "true").parquet(question.directory)
