"""Reads all volumes of the history, and what clients used, for ``quotahost replay``: there any volume may decide.

The readings are as many as the history has, up to ``MOST``; of more the last one of each part of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import groupby
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from quotahost.pipeline.history.collect import bucket, span
from quotahost.pipeline.history.ranking import VOLUME, buckets
from quotahost.pipeline.history.store import days_asked, no_readings, rows
from quotahost.pipeline.history.used import with_clients
from quotahost.report.values import Curve, Name, Question, Report, in_utc

MOST: Final = 200_000  # readings that this process takes


def everything(
    spark: SparkSession, question: Question, show_step: Callable[[str], None] = lambda step: None, most: int = MOST
) -> Report:
    """The curves of all volumes asked for, by name, without fill rates; and what clients used, if that is kept.

    Args:
        spark: the session that reads the history.
        question: which volumes, and when.
        show_step: takes a line about each step before it begins.
        most: how many readings at most, about.

    Raises:
        NoHistory: there is no such reading; the message names the readings that there are.
    """
    show_step("Looking for the newest readings")
    asked = days_asked(spark, question)
    history = rows(spark, question)
    ends = span(history, asked)
    if ends is None:
        raise no_readings(spark, question, asked)
    show_step("Counting the readings")
    there = history.groupBy(*VOLUME).count().selectExpr("count(*) AS volumes", "sum(count) AS readings").collect()[0]
    show_step(f"Reading the curves of {there['volumes']:,} volumes")
    width = _width(ends[1] - ends[0], there["volumes"], there["readings"], most)
    curves = _curves(history, ends[0], width)
    found = Report(question, in_utc(ends[0] / 1e6), in_utc(ends[1] / 1e6), timedelta(), len(curves), curves)
    show_step("Reading what clients used")
    return with_clients(spark, found)


def _width(length: int, volumes: int, readings: int, most: int) -> int:
    """The length of a part in microseconds; with 1 every reading is one by itself."""
    return 1 if readings <= most else max(1, -(-length * volumes // most))


def _curves(history: DataFrame, since: int, width: int) -> tuple[Curve, ...]:
    found = buckets(history, None, since, width).collect()
    found.sort(key=lambda row: (*row[:3], row["at"]))
    each = groupby(found, key=lambda row: Name(*row[:3]))
    return tuple(Curve(name, tuple(map(bucket, of)), None) for name, of in each)
