"""Answers the question of a report by three passes over the history; each returns little to this process.

The passes are the span of time, the ranking of the volumes, and the curves of the worst ones
(:mod:`quotahost.pipeline.history.ranking`). :mod:`quotahost.report.page` draws the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from itertools import groupby
from math import isfinite
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from quotahost.pipeline.history.ranking import buckets, ranked
from quotahost.pipeline.history.store import days_asked, no_readings, rows
from quotahost.report.values import MOST_BUCKETS, Bucket, Curve, Name, Question, Report, in_utc
from quotahost.report.wording import show_span

WEEK: Final = timedelta(days=7)
_MICRO: Final = timedelta(microseconds=1)


def collect(spark: SparkSession, question: Question, show_step: Callable[[str], None] = lambda step: None) -> Report:
    """The curves of the worst of the volumes asked for.

    Args:
        spark: the session that reads the history.
        question: which volumes, when, and how many.
        show_step: takes a line about each step before it begins.

    Raises:
        NoHistory: there is no such reading; the message names the readings that there are.
    """
    show_step("Looking for the newest readings")
    asked = days_asked(spark, question)
    history = rows(spark, question)
    ends = span(history, asked)
    if ends is None:
        raise no_readings(spark, question, asked)
    since, until = ends
    # A quarter of the span, from microseconds to seconds.
    recent = question.recent or min(WEEK, timedelta(seconds=max(60, (until - since) // 4_000_000)))
    show_step(f"Ranking the volumes by their last {show_span(recent)}")
    rates, known = _worst(history, until, recent, question.worst)
    show_step(f"Reading the curves of {len(rates)} of {known:,} volumes")
    curves = _curves(history, rates, since, until)
    return Report(question, in_utc(since / 1e6), in_utc(until / 1e6), recent, known, curves)


def span(history: DataFrame, asked: list[date]) -> tuple[int, int] | None:
    """Microseconds since 1970 of the oldest and the newest reading; reads the first and the last day only if it can."""
    ends = [F.expr("unix_micros(min(at)) AS first"), F.expr("unix_micros(max(at)) AS last")]
    edges = history.where(F.col("day").isin(asked[0], asked[-1])).groupBy("day").agg(*ends).collect()
    # On one of the two days there is no reading of what was asked for, so all days are read.
    if {row["day"] for row in edges} != {asked[0], asked[-1]}:
        edges = history.agg(*ends).where("first IS NOT NULL").collect()
    if not edges:
        return None
    return min(row["first"] for row in edges), max(row["last"] for row in edges)


def _worst(history: DataFrame, until: int, recent: timedelta, count: int) -> tuple[dict[Name, float | None], int]:
    """The fill rates of the worst volumes in bytes/s, worst first, and how many volumes there are."""
    length = recent // _MICRO
    # Spark doesn't open the folders of earlier days.
    day = in_utc((until - length) / 1e6).date()
    found = ranked(history.where(F.col("day") >= F.lit(day)), until, length).limit(count).collect()
    rates = {Name(*row[:3]): row["rate"] for row in found}
    return {name: _finite(rate) for name, rate in rates.items()}, found[0]["known"]


def _finite(rate: float | None) -> float | None:
    return rate if rate is not None and isfinite(rate) else None


def _curves(history: DataFrame, rates: dict[Name, float | None], since: int, until: int) -> tuple[Curve, ...]:
    # Rounded up: otherwise the newest reading would begin a bucket of its own.
    width = (until - since) // MOST_BUCKETS + 1
    found = buckets(history, list(rates), since, width).collect()
    # Sorted here, where the buckets are few.
    found.sort(key=lambda row: (*row[:3], row["at"]))
    of = {name: tuple(map(bucket, each)) for name, each in groupby(found, key=lambda row: Name(*row[:3]))}
    return tuple(Curve(name, of[name], rate) for name, rate in rates.items())


def bucket(row: Row) -> Bucket:
    """A row of ``ranking.buckets``."""
    return Bucket(row["at"] / 1e6, row["low"], row["high"], row["last"], row["capacity"], row["soft"], row["hard"])
