"""Spark reads the history (Parquet) here: readings for ``report``, ``replay`` and the bill, and the bytes of budgets.

Spark groups the rows into parts of the time (buckets), so every query returns few enough rows for this process's
memory, whatever the size of the history.
"""

import re
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from quotahost.base.errors import QuotahostError, Unusable
from quotahost.base.text import short
from quotahost.cli.console import begin
from quotahost.cli.lab.curves import Bucket, BudgetUse, ClientUse, Curve, Name, Question, Report, Use, in_utc
from quotahost.pipeline.history import BUDGETS_COLUMNS, COLUMNS, MINUTE, PART, USAGE_COLUMNS, folder
from quotahost.pipeline.session import file_system, session
from quotahost.records.fields import MAX_LONG
from quotahost.units.show import show_span

# The pipeline's defaults suit short batches; a report scans a long history.
_CONF: Final = {
    "spark.sql.shuffle.partitions": "8", "spark.sql.codegen.wholeStage": "true",
    # Builds before the first release left a list of files in the history; it lacks later files, and paths may be old.
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "true",
}  # fmt: skip
MOST_BUCKETS: Final = 500  # buckets of one volume: about one for each two pixels of its figure
MOST_READINGS: Final = 200_000  # readings that this process takes for a replay, and rows of clients' use
MOST_CLIENTS: Final = 500
WEEK: Final = 7 * 86400  # seconds
_VOLUME: Final = ("cluster", "broker", "volume")
_CLIENT: Final = ("cluster", "user", "client")
TURN_ON: Final = "run `quotahost pipeline` with --history DIR, and name DIR here"
_MOMENT: Final = 1e-6  # seconds: the smallest difference between two times in the history


@contextmanager
def started(command: str) -> Iterator[SparkSession]:
    """Start Spark in this process for a command that reads a history.

    Raises QuotahostError if Spark finds no Java to run on; Unusable if a file of the history can't be read.
    """
    begin("Starting Spark")
    # Spark's progress bar shows the current stage, and how many of its tasks are done.
    bar = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    # With an exception PySpark would leave behind a JVM that is starting, and Py4J would log its stack.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        spark = session(f"quotahost {command}", conf=_CONF | bar, kafka=False)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a new SparkContext replaces the handler
        yield spark
    except (Py4JError, PySparkException) as error:
        remedy = "if a file is damaged, move it away: the others are read without it; if days were deleted, begin again"
        raise Unusable(f"the history can't be read: {short(error)}", remedy) from None
    finally:
        signal.signal(signal.SIGINT, before)


# ---- readings for a report and a replay ----


def worst(spark: SparkSession, question: Question) -> Report:
    """The curves of the worst volumes that the question selects.

    Raises QuotahostError if the question selects no reading; the message gives the days that have readings.
    """
    readings, since, until = _asked(spark, question)
    # The default is a quarter of the span; the division also converts microseconds to seconds.
    recent = question.recent or min(WEEK, max(60, (until - since) // 4_000_000))
    begin(f"Ranking the volumes by their last {show_span(recent)}")
    length = round(recent * 1e6)
    # With this condition Spark doesn't open the folders of earlier days.
    latest = readings.where(F.col("day") >= F.lit(in_utc((until - length) / 1e6).date()))
    rows = ranked(latest, until, length).limit(question.worst).collect()
    rates = {Name(*row[:3]): row["rate"] for row in rows}
    begin(f"Reading the curves of {len(rates)} of {rows[0]['reported']:,} volumes")
    # The width is rounded up: otherwise the latest reading would need one more bucket.
    width = (until - since) // MOST_BUCKETS + 1
    curves = _curves(readings.where(_one_of(_VOLUME, rates)), since, width)
    drawn = tuple(Curve(name, curves[name], rate) for name, rate in rates.items())
    return Report(question, since / 1e6, until / 1e6, recent, rows[0]["reported"], drawn)


def everything(spark: SparkSession, question: Question, most: int = MOST_READINGS) -> Report:
    """The curves of all volumes that the question selects, by name, without fill rates; and what clients used, if kept.

    If there are more than about ``most`` readings, a curve has the last reading of each part of the time. Clients' use
    is reduced in the same way, to the mean of each part. Raises QuotahostError as :func:`worst` does.
    """
    readings, since, until = _asked(spark, question)
    begin("Counting the readings")
    counts = readings.groupBy(*_VOLUME).count().selectExpr("count(*) AS volumes", "sum(count) AS readings").first()
    assert counts is not None
    begin(f"Reading the curves of {counts['volumes']:,} volumes")
    # With a width of 1 microsecond every reading is a bucket of its own.
    width = 1 if counts["readings"] <= most else max(1, -(-(until - since) * counts["volumes"] // most))
    curves = tuple(Curve(name, of, None) for name, of in _curves(readings, since, width).items())
    # A thinned-out curve begins later than the oldest reading, and a replay must not take that time for a gap.
    report = Report(question, min(curve.buckets[0].at for curve in curves), until / 1e6, 0.0, len(curves), curves)
    begin("Reading what clients used")
    return replace(report, clients=_clients(spark, report, most))


def _clients(spark: SparkSession, report: Report, most: int) -> tuple[ClientUse, ...]:
    """The busiest clients in the report's time, if the history has their usage."""
    # ``until`` is exclusive, and the time of the last reading belongs to the report.
    question = replace(report.question, since=report.since, until=report.until + _MOMENT)
    rows = stored(spark, USAGE_COLUMNS, folder(question.directory, "usage"), question).where("rate IS NOT NULL")
    rates = rows.groupBy(*_CLIENT).agg(F.expr("sum(rate) AS total"), F.expr("count(*) AS minutes"))
    busiest = rates.orderBy(F.desc("total"), *_CLIENT).limit(MOST_CLIENTS).collect()
    # A part of the time is one or more whole minutes.
    width = max(1, -(-sum(row["minutes"] for row in busiest) // most)) * MINUTE.total_seconds()
    part = F.expr(f"bigint(floor(unix_micros(at) / {width * 1e6:.0f}D)) * {width}D AS at")
    demand = F.expr("IF(count(demand) = count(1), max(demand), NULL) AS demand")
    theirs = rows.where(_one_of(_CLIENT, (row[:3] for row in busiest))).groupBy(*_CLIENT, part, "broker")
    return tuple(
        ClientUse(cluster, user, client, width, tuple(Use(*row[3:]) for row in of))
        for (cluster, user, client), of in _by_name(theirs.agg(F.avg("rate"), demand, F.max("quota")), 3)
    )


def budget_uses(
    spark: SparkSession, report: Report, names: Collection[str], most: int = MOST_READINGS
) -> list[BudgetUse]:
    """The bytes of these budgets in the report's time, as far as the history has them, in about ``most`` parts."""
    begin("Reading what budgets held")
    # The time begins with the part that contains the first reading.
    part = PART.total_seconds()
    question = replace(report.question, since=report.since - part, until=report.until + _MOMENT)
    rows = stored(spark, BUDGETS_COLUMNS, folder(question.directory, "budgets"), question)
    means = int((report.until - report.since) / part + 2) * len(names) * len(report.clusters)
    width = -(-means // most) * part
    at = F.expr(f"unix_micros(at) div {width * 1e6:.0f}L * {width}D AS at")
    asked = rows.where(F.col("budget").isin(*names))
    sums = asked.groupBy("cluster", "budget", "at").agg(F.sum("bytes").alias("bytes"))
    # A client that writes snapshots may claim any bytes, and Spark fails to convert a sum beyond a BIGINT.
    parts = sums.groupBy("cluster", "budget", at).agg(F.expr(f"bigint(least(max(bytes), {MAX_LONG}D)) AS bytes"))
    by_name = _by_name(parts, 2)
    return [BudgetUse(cluster, budget, width, [row[2:] for row in of]) for (cluster, budget), of in by_name]


# ---- selecting readings ----


def _asked(spark: SparkSession, question: Question) -> tuple[DataFrame, int, int]:
    """The selected readings, and the times of the oldest and the latest one in microseconds since 1970."""
    begin("Looking for the oldest and the latest reading")
    place, names = question.directory, [name for asked in _names(question).values() for name in asked]
    readings = stored(spark, COLUMNS, place, question)
    (ends,) = readings.selectExpr("unix_micros(min(at)) AS first", "unix_micros(max(at)) AS last").collect()
    if ends["first"] is not None:
        return readings, ends["first"], ends["last"]
    every = stored(spark, COLUMNS, place, Question(place))
    (days,) = every.selectExpr("min(day) AS first", "max(day) AS last").collect()
    if days["first"] is None:
        raise QuotahostError(f"{place} shows this user no readings; {TURN_ON}: the first come soon after its start")
    of = f" of {', '.join(names)}" if names else ""
    raise QuotahostError(f"no such readings{of}; {place} has others from {days['first']} to {days['last']}")


def _names(question: Question) -> dict[str, Collection[str]]:
    names = {"cluster": question.clusters, "broker": question.brokers, "volume": question.volumes}
    return {column: asked for column, asked in names.items() if asked}


def stored(spark: SparkSession, columns: str, directory: str, question: Question) -> DataFrame:
    """The selected rows of a folder of the history; none if the folder doesn't exist. Spark opens no other days."""
    system, path = file_system(spark, directory)
    if not system.exists(path):
        return spark.createDataFrame([], columns)
    # The schema is given, so Spark opens no file to infer it. Its option ignoreMissingFiles would also leave out files
    # that this user may not read. Spark takes a path for a glob pattern, so the pattern's characters are escaped.
    rows = spark.read.schema(columns).parquet(re.sub(r"([\\\[\]{}*?])", r"\\\1", directory))
    if question.since is not None:
        since = in_utc(question.since)
        rows = rows.where((F.col("day") >= F.lit(since.date())) & (F.col("at") >= F.lit(since)))
    if question.until is not None:
        until = in_utc(question.until)
        rows = rows.where((F.col("day") <= F.lit(until.date())) & (F.col("at") < F.lit(until)))
    for column, names in _names(question).items():
        rows = rows.where(F.col(column).isin(list(names)))
    return rows


# ---- grouping by Spark's own functions ----


def ranked(readings: DataFrame, latest: int, recent: int) -> DataFrame:
    """A row for each volume with recent readings, the worst volume first.

    Recent readings are those of the ``recent`` microseconds up to ``latest``, in microseconds since 1970. The forecast
    takes each volume's present fill rate for another ``recent`` microseconds. The worst volume will then have consumed
    the largest share of its hard limit, or of its capacity if it has no limit: it is full already, or it fills fast.
    A row has cluster, broker and volume; ``rate``, the fill rate in bytes/s by least squares, null if all readings have
    the same time; and ``reported``, the number of volumes.
    """
    seconds = f"(unix_micros(at) - {latest}L) / 1e6D"  # relative to ``latest``, so that doubles keep their precision
    rows = readings.where(F.expr(f"unix_micros(at) BETWEEN {latest - recent}L AND {latest}L"))
    # All columns have a fixed width: for any other column Spark would sort all readings instead of hashing them.
    by_volume = rows.groupBy(*_VOLUME).agg(
        F.expr("max_by(consumed, at) AS consumed"),
        F.expr("max_by(coalesce(hard, capacity), at) AS room"),
        F.expr(f"regr_slope(CAST(consumed AS DOUBLE), {seconds}) AS rate"),
    )
    ahead = f"consumed + greatest(coalesce(rate, 0D), 0D) * {recent / 1e6}D"
    # A volume whose limit is 0 bytes comes first.
    expected = F.expr(f"coalesce(try_divide({ahead}, room), double('infinity')) AS expected")
    reported = F.expr("count(*) OVER () AS reported")
    return by_volume.select(*_VOLUME, "rate", expected, reported).orderBy(F.desc("expected"), *_VOLUME)


def _curves(readings: DataFrame, since: int, width: int) -> dict[Name, tuple[Bucket, ...]]:
    """The buckets of each volume, the oldest first; a part of the time without readings has no bucket.

    The first part begins at ``since``, in microseconds since 1970, and each part is ``width`` microseconds long.
    """
    columns = ["unix_micros(max(at)) / 1e6D", "min(consumed)", "max(consumed)"]
    columns += [f"max_by({column}, at)" for column in ("consumed", "capacity", "soft", "hard")]
    part = F.expr(f"(unix_micros(at) - {since}L) div {width}L AS bucket")
    parts = readings.groupBy(*_VOLUME, part).agg(*map(F.expr, columns)).drop("bucket")
    return {Name(*name): tuple(Bucket(*row[3:]) for row in of) for name, of in _by_name(parts, 3)}


def _one_of(columns: Sequence[str], names: Iterable[Sequence[str]]) -> Column:
    return F.struct(*columns).isin([F.struct(*map(F.lit, name)) for name in names])


def _by_name(parts: DataFrame, length: int) -> Iterator[tuple[tuple[str, ...], Iterator[Row]]]:
    """Group the rows by their first ``length`` columns, the name; this process sorts the few rows, the oldest first."""
    return groupby(sorted(parts.collect(), key=lambda row: row[:5]), key=lambda row: row[:length])
