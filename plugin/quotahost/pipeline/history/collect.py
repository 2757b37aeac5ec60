"""A question to a report: three passes over the history, of which each hands little to this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from itertools import groupby
from math import isfinite
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from quotahost.pipeline.history.ranking import buckets, ranked
from quotahost.pipeline.history.store import days_asked, nothing, rows
from quotahost.report.values import MOST_BUCKETS, Bucket, Curve, Name, Question, Report, in_utc
from quotahost.report.wording import show_span

WEEK: Final = timedelta(days=7)
_MICRO: Final = timedelta(microseconds=1)


def collect(
    spark: SparkSession, question: Question, tell: Callable[[str], None] = lambda step: None
) -> Report:
    """What the history holds of the worst volumes asked for.

    Args:
        spark: where to read.
        question: what is asked.
        tell: is told what is done next.

    Raises:
        NoHistory: there is nothing of that; it says what there is.
    """
    tell("Looking for the newest readings")
    asked = days_asked(spark, question)
    history = rows(spark, question)
    span = _span(history, asked)
    if span is None:
        raise nothing(spark, question, asked)
    since, until = span
    recent = question.recent or min(WEEK, timedelta(seconds=max(60, (until - since) // 4_000_000)))
    tell(f"Ranking the volumes by their last {show_span(recent)}")
    rates, known = _worst(history, until, recent, question.worst)
    tell(f"Reading the curves of {len(rates)} of {known:,} volumes")
    curves = _curves(history, rates, since, until)
    return Report(question, in_utc(since / 1e6), in_utc(until / 1e6), recent, known, curves)


def _span(history: DataFrame, asked: list[date]) -> tuple[int, int] | None:
    """Microseconds since 1970 of the oldest and the newest reading, by the first and last day alone if that will do."""
    ends = [F.expr("unix_micros(min(at)) AS first"), F.expr("unix_micros(max(at)) AS last")]
    edges = history.where(F.col("day").isin(asked[0], asked[-1])).groupBy("day").agg(*ends).collect()
    if {row["day"] for row in edges} != {asked[0], asked[-1]}:
        edges = history.agg(*ends).where("first IS NOT NULL").collect()
    if not edges:
        return None
    return min(row["first"] for row in edges), max(row["last"] for row in edges)


def _worst(
    history: DataFrame, until: int, recent: timedelta, count: int
) -> tuple[dict[Name, float | None], int]:
    """Their fill rates, worst first, and how many volumes there are."""
    length = recent // _MICRO
    day = in_utc((until - length) / 1e6).date()
    found = ranked(history.where(F.col("day") >= F.lit(day)), until, length).limit(count).collect()
    rates = {Name(*row[:3]): row["rate"] for row in found}
    return {name: _known(rate) for name, rate in rates.items()}, found[0]["known"]


def _known(rate: float | None) -> float | None:
    return rate if rate is not None and isfinite(rate) else None


def _curves(history: DataFrame, rates: dict[Name, float | None], since: int, until: int) -> tuple[Curve, ...]:
    width = (until - since) // MOST_BUCKETS + 1
    found = buckets(history, list(rates), since, width).collect()
    found.sort(key=lambda row: (*row[:3], row["at"]))
    of = {name: tuple(map(_bucket, each)) for name, each in groupby(found, key=lambda row: Name(*row[:3]))}
    return tuple(Curve(name, of[name], rate) for name, rate in rates.items())


def _bucket(row: Row) -> Bucket:
    return Bucket(
        row["at"] / 1e6, row["low"], row["high"], row["last"], row["capacity"], row["soft"], row["hard"]
    )
