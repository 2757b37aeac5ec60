"""From a row of the roll-up to the record that brokers read; :mod:`quotahost.records.cluster_volumes` encodes it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row

from quotahost.model import Limit, LimitType, Volume
from quotahost.model.bounds import bounds
from quotahost.records.cluster_volumes import ClusterRecord, Filling, OfflineDir
from quotahost.records.fields import topic_set


def record(row: Row, run: int, sequence: int) -> ClusterRecord:
    """The record of one cluster, from a row of ``aggregate.rollup``; ``sequence`` is its number in the run."""
    fullest = tuple(map(_filling, row["fullest"]))
    return ClusterRecord(
        row["cluster"],
        run,
        sequence,
        datetime.fromtimestamp(row["now"] / 1000, UTC),
        # PySpark returns times without a zone, in this machine's; astimezone reads them so.
        row["newest"].astimezone(UTC),
        row["reporting"],
        row["stale"],
        row["missing"],
        tuple(row["staleBrokers"]),
        tuple(row["missingBrokers"]),
        row["offline"],
        tuple(OfflineDir(each["broker"], each["logDir"]) for each in row["offlineLogDirs"]),
        row["volumeCount"],
        # Spark's sums are Decimals.
        int(row["capacity"]),
        int(row["consumed"]),
        smallest_factor(fullest),
        fullest,
        tuple(map(_filling, row["silent"])),
        {kind: tuple(map(_filling, row[kind.value])) for kind in LimitType},
        row["kinds"],
        topic_set(row["affectedTopics"]),
    )


def smallest_factor(fullest: Iterable[Filling]) -> float | None:
    """The smallest factor that the published limits yield, None without any.

    As the policy ``limits`` finds it. The smallest of all volumes is among those of ``ClusterRecord.fullest``.
    """
    volumes = (each.volume for each in fullest)
    judged = ((volume, bounds(volume, volume.soft, volume.hard)) for volume in volumes)
    return min((found.ramp(volume.consumed) for volume, found in judged if found), default=None)


def _filling(row: Any) -> Filling:
    soft, hard = _limit(row["softLimit"]), _limit(row["hardLimit"])
    volume = Volume(row["broker"], row["volumeName"], row["capacity"], row["consumed"], soft, hard)
    return filling(volume, row["fillRate"])


def filling(volume: Volume, rate: float | None) -> Filling:
    """A volume with its fill rate in bytes/s, and when it is full at that rate; never, unless it fills."""
    return Filling(volume, rate, volume.free / rate if rate is not None and rate > 0 else None)


def _limit(row: Any) -> Limit | None:
    return None if row is None else Limit(LimitType(row["type"]), row["level"])
