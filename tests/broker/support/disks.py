"""A broker's disk as the broker publishes it, and limits around what is used.

Other programs may write to the same disk. So a test works out what it expects from the newest snapshot, not from one
that it read before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import pytest

from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from quotahost.model import Volume
from quotahost.records import snapshot as snapshot_records
from tests.broker.support.node import gauge
from tests.broker.support.numbers import records

SNAPSHOTS: Final = "__quotahost_snapshots"


def published(node: KafkaNode) -> Volume:
    """The first volume of the broker's newest snapshot."""
    key = str(node.node_id).encode()
    return snapshot_records.decode(key, dict(records(node, SNAPSHOTS))[key]).volumes[0]


@dataclass(frozen=True)
class DiskLimits:
    """Limits in bytes used, so far apart that the disk stays between them whatever else writes to it."""

    soft: int
    hard: int

    @classmethod
    def around(cls, volume: Volume) -> Self:
        """Limits far below and above what is used; none lies above the capacity."""
        return cls(volume.consumed // 4, min(volume.consumed * 2, volume.capacity))

    def factor(self, consumed: int) -> float:
        """The factor at so many bytes used: 1 at soft, 0 at hard."""
        return (self.hard - consumed) / (self.hard - self.soft)


def wait_for_factor(node: KafkaNode, full: KafkaNode, limits: DiskLimits) -> None:
    """Waits until a broker's factor is the one that follows from the other broker's newest snapshot."""

    def has_factor() -> bool:
        left = limits.factor(published(full).consumed)
        return gauge(node, "QuotaTable", "Factor") == pytest.approx(left, abs=0.05)

    eventually(has_factor, what=f"the factor that follows from the disk of broker {full.node_id}")
