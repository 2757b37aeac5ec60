"""Volumes: small ones that a test fills, what one could see of them meanwhile, and what a broker publishes of its own.

Other programs may write to a broker's disk. So a test that mounts none works out what it expects from the newest
snapshot, not from one that it read before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import pytest

from harness.kafka.node import KafkaNode
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually
from quotahost.model import Volume
from quotahost.records import snapshot as snapshot_records
from tests.broker.support.numbers import records
from tests.skips import COULD_NOT_RUN

SNAPSHOTS: Final = "__quotahost_snapshots"
MEGA: Final = 1_000_000
#: Two samples a quota window, so that a producer's bursts are small beside the volume.
SMALL_BURSTS: Final = {"quota.window.num": "2"}
NO_VOLUME: Final = (
    f"{COULD_NOT_RUN}this user may mount no file system here, and a test that fills a volume needs a small one. "
    "Run it as root, in a container that may mount (SYS_ADMIN), or where user namespaces are allowed"
)


@contextmanager
def small_volume(folder: Path, size: int) -> Iterator[Path]:
    """Mounts a file system of so many bytes at the folder; skips the test, and says so, where that isn't allowed."""
    with own_file_system(folder, str(size)) as mounted:
        if not mounted:
            pytest.skip(NO_VOLUME)
        yield folder


def published(node: KafkaNode) -> Volume:
    """The first volume of the broker's newest snapshot, once it has published one."""
    key = str(node.node_id).encode()
    return eventually(lambda: snapshot_records.decode(key, dict(records(node, SNAPSHOTS))[key]).volumes[0])


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
