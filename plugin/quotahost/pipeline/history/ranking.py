"""From readings to what a report draws, in Spark's own functions: nothing grows with the number of readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotahost.report.values import Name

VOLUME: Final = ("cluster", "broker", "volume")


def ranked(readings: DataFrame, newest: int, recent: int) -> DataFrame:
    """A row for each volume with readings in the recent part, worst first.

    Worst is who will have consumed most of its hard limit (of its capacity, if it has none) when as much time as
    ``recent`` has passed at its present fill rate: so a full volume that stands still and an emptier one that
    fills fast are both found.

    Args:
        readings: rows of quotahost.pipeline.history.writer.COLUMNS.
        newest: the time that the recent part ends with, in microseconds since 1970.
        recent: its length, in microseconds.

    Returns:
        cluster, broker, volume; ``rate`` in bytes/s, the slope of least squares, null with readings of one time
        only; ``expected``, the share described above; ``known``, how many volumes there are.
    """
    seconds = f"(unix_micros(at) - {newest}L) / 1e6D"  # from the newest, so that doubles keep their digits
    rows = readings.where(F.expr(f"unix_micros(at) BETWEEN {newest - recent}L AND {newest}L"))
    # Only columns of a fixed width: Spark would sort all readings for others.
    latest = rows.groupBy(*VOLUME).agg(
        F.expr("max_by(consumed, at) AS consumed"),
        F.expr("max_by(coalesce(hard, capacity), at) AS room"),
        F.expr(f"regr_slope(CAST(consumed AS DOUBLE), {seconds}) AS rate"),
    )
    ahead = f"consumed + greatest(coalesce(rate, 0D), 0D) * {recent / 1e6}D"
    return latest.select(
        *VOLUME,
        "rate",
        F.expr(f"coalesce(try_divide({ahead}, room), double('infinity')) AS expected"),
        F.expr("count(*) OVER () AS known"),
    ).orderBy(F.desc("expected"), *VOLUME)


def buckets(readings: DataFrame, names: Sequence[Name], since: int, width: int) -> DataFrame:
    """The named volumes' readings in parts of the time, in any order; parts without any are left out.

    Args:
        readings: rows of quotahost.pipeline.history.writer.COLUMNS.
        names: at least one.
        since: where the first part begins, in microseconds since 1970; readings before are left out.
        width: of a part, in microseconds.

    Returns:
        cluster, broker, volume; ``at`` in microseconds since 1970, of the last reading of the part; ``low``, ``high``
        and ``last`` consumed; ``capacity``, ``soft`` and ``hard`` as at the last.
    """
    last = {"last": "consumed", "capacity": "capacity", "soft": "soft", "hard": "hard"}
    return (
        _of(readings, names)
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
    """Each column alone, which Parquet can skip by, and the three together."""
    rows = readings
    for column, values in zip(VOLUME, zip(*names, strict=True), strict=True):
        rows = rows.where(F.col(column).isin(sorted(set(values))))
    return rows.where(F.struct(*VOLUME).isin([F.struct(*map(F.lit, name)) for name in names]))
