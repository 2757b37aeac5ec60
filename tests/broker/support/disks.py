"""A broker's disk as it publishes it, and limits with what is used between them.

Others may write to the same disk: what a test awaits comes from what was published last, not from what was once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import pytest

from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from quotahost.model import Volume
from quotahost.records import snapshot as wire
from tests.broker.support.node import gauge
from tests.broker.support.numbers import records

SNAPSHOTS: Final = "__quotahost_snapshots"


def published(node: KafkaNode) -> Volume:
    """The first volume of the broker's newest snapshot."""
    key = str(node.node_id).encode()
    return wire.decode(key, dict(records(node, SNAPSHOTS))[key]).volumes[0]


@dataclass(frozen=True)
class DiskLimits:
    """Limits in bytes used, far enough apart that a disk stays between them whoever writes to it."""

    soft: int
    hard: int

    @classmethod
    def around(cls, volume: Volume) -> Self:
        """Limits with what is used well between them; no limit lies above the capacity."""
        return cls(volume.consumed // 4, min(volume.consumed * 2, volume.capacity))

    def factor(self, consumed: int) -> float:
        """What is left to producers: 1 at soft, 0 at hard."""
        return (self.hard - consumed) / (self.hard - self.soft)


def wait_for_factor(node: KafkaNode, full: KafkaNode, limits: DiskLimits) -> None:
    """The factor on one broker becomes what the other's disk, as last published, leaves between its limits."""

    def is_so() -> bool:
        left = limits.factor(published(full).consumed)
        return gauge(node, "QuotaTable", "Factor") == pytest.approx(left, abs=0.05)

    eventually(is_so, what=f"the factor that the disk of broker {full.node_id} leaves")
