"""Ranks volumes and thins out their readings for a report, in Spark's own functions.

No result grows with the number of readings: one row for each volume, and at most so many for each curve.
:mod:`quotahost.pipeline.history.collect` uses both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotahost.report.values import Name

VOLUME: Final = ("cluster", "broker", "volume")


def ranked(readings: DataFrame, newest: int, recent: int) -> DataFrame:
    """A row for each volume with readings in the recent part, worst first.

    The worst volume is the one that will have consumed most of its hard limit (of its capacity, if it has none) when
    as much time as ``recent`` has passed at its present fill rate. So the ranking finds a full volume that stands
    still as well as an emptier one that fills fast.

    Args:
        readings: rows of quotahost.pipeline.history.writer.COLUMNS.
        newest: the end of the recent part, in microseconds since 1970.
        recent: the length of the recent part, in microseconds.

    Returns:
        cluster, broker, volume; ``rate``, the fill rate in bytes/s by least squares, null with readings of one time
        only; ``expected``, the share described above; ``known``, how many volumes there are.
    """
    seconds = f"(unix_micros(at) - {newest}L) / 1e6D"  # since the newest, so that doubles keep their digits
    rows = readings.where(F.expr(f"unix_micros(at) BETWEEN {newest - recent}L AND {newest}L"))
    # Columns of a fixed width only: for others Spark would sort all readings.
    latest = rows.groupBy(*VOLUME).agg(
        F.expr("max_by(consumed, at) AS consumed"),
        F.expr("max_by(coalesce(hard, capacity), at) AS room"),
        F.expr(f"regr_slope(CAST(consumed AS DOUBLE), {seconds}) AS rate"),
    )
    ahead = f"consumed + greatest(coalesce(rate, 0D), 0D) * {recent / 1e6}D"
    return latest.select(
        *VOLUME,
        "rate",
        # A volume with no room at all, whose limit is at 0 bytes, comes first.
        F.expr(f"coalesce(try_divide({ahead}, room), double('infinity')) AS expected"),
        F.expr("count(*) OVER () AS known"),
    ).orderBy(F.desc("expected"), *VOLUME)


def buckets(readings: DataFrame, names: Sequence[Name] | None, since: int, width: int) -> DataFrame:
    """The readings of these volumes by parts of the time, in any order; parts without readings have no row.

    Args:
        readings: rows of quotahost.pipeline.history.writer.COLUMNS.
        names: at least one; None for all volumes.
        since: the begin of the first part, in microseconds since 1970; earlier readings are left out.
        width: the length of a part, in microseconds.

    Returns:
        cluster, broker, volume; ``at`` in microseconds since 1970, of the last reading of the part; ``low``, ``high``
        and ``last`` consumed; ``capacity``, ``soft`` and ``hard`` as at the last.
    """
    last = {"last": "consumed", "capacity": "capacity", "soft": "soft", "hard": "hard"}
    return (
        (readings if names is None else _of(readings, names))
        .where(F.expr(f"unix_micros(at) >= {since}L"))
        .groupBy(*VOLUME, F.expr(f"(unix_micros(at) - {since}L) div {width}L AS bucket"))
        .agg(
            F.expr("unix_micros(max(at)) AS at"),
            F.expr("min(consumed) AS low"),
            F.expr("max(consumed) AS high"),
            *(F.expr(f"max_by({column}, at) AS {name}") for name, column in last.items()),
        )
        .drop("bucket")
    )


def _of(readings: DataFrame, names: Sequence[Name]) -> DataFrame:
    """Filter by each column alone, by which Parquet can skip row groups, and by the three together."""
    rows = readings
    for column, values in zip(VOLUME, zip(*names, strict=True), strict=True):
        rows = rows.where(F.col(column).isin(sorted(set(values))))
    return rows.where(F.struct(*VOLUME).isin([F.struct(*map(F.lit, name)) for name in names]))
