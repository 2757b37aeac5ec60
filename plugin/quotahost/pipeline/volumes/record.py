"""From rows of the roll-up to the records that brokers read, and for how long these stay true.

:func:`record` makes a cluster's record; :mod:`quotahost.records.cluster_volumes` encodes it, and
:mod:`quotahost.pipeline.volumes.publisher` publishes it. Without a new snapshot a record changes by time alone, when a
broker becomes stale or expires; so until then a batch would make the same again, and a tick needs none (:class:`Last`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Row

from quotahost.model import Limit, LimitType, Volume
from quotahost.model.volumes import byte_limits
from quotahost.pipeline.volumes.aggregate import Rules
from quotahost.records.cluster_volumes import ClusterRecord, Filling, OfflineDir
from quotahost.records.fields import topic_set

_NEVER: Final = math.inf


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
    judged = ((volume, byte_limits(volume, volume.soft, volume.hard)) for volume in volumes)
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


@dataclass(frozen=True, slots=True)
class Last:
    """The records of a batch.

    Attributes:
        batch: the number of the batch.
        rules: by what it judged.
        ahead: ms by which Kafka's clock was ahead of the driver's.
        until: Kafka's time, in ms since the epoch, up to which the records are true while no snapshot comes.
        records: one for each cluster.
    """

    batch: int
    rules: Rules
    ahead: int
    until: float
    records: tuple[ClusterRecord, ...]

    def holds(self, rules: Rules, ahead: int, now: int) -> bool:
        """Whether a batch that begins ``now`` (ms, Kafka's) and has read nothing new would make the same records."""
        return rules == self.rules and ahead == self.ahead and now <= self.until

    def again(self, run: int, sequence: int, now: int) -> list[ClusterRecord]:
        """The same records, computed ``now`` (ms, Kafka's)."""
        at = datetime.fromtimestamp(now / 1000, UTC)
        return [replace(each, run=run, sequence=sequence, computed_at=at) for each in self.records]


def true_until(rows: Iterable[Row]) -> float:
    """Kafka's time in ms, from rows of ``aggregate.rollup``: the first at which a broker becomes stale or expires."""
    return min((row["until"] for row in rows if row["until"] is not None), default=_NEVER)
