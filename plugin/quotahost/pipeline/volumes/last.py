"""What was published last, and for how long it stays true: as long a tick needs no batch.

:mod:`quotahost.pipeline.volumes.publisher` keeps one for the batch that was published last. Without a new snapshot a
record changes by time alone, when a broker becomes stale or expires; so until then a batch would make the same again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Row

from quotahost.pipeline.volumes.aggregate import Rules
from quotahost.records.cluster_volumes import ClusterRecord

_NEVER: Final = math.inf


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
