"""What a shorter retention of a topic would free on one volume, by closed segments (by the topic's age where nobody
tells its retention), and what waits for its upload.

Kafka deletes whole segments, the oldest first, and never the one that it appends to (LocalLog, UnifiedLog). By time it
deletes a segment whose newest record is older than the retention; the last entry of its ``.timeindex`` has that
record's timestamp (12 bytes: milliseconds, offset), which producers may have chosen. By size it deletes for as long as
what is left is at least the retention.

With tiered storage (KIP-405) Kafka deletes no segment that it has not uploaded yet, however old it is. Which ones it
has uploaded, no file says. But one that is past its retention for longer than Kafka takes to look for such segments
(:data:`LOOKED_FOR`) is most likely waiting for its upload: then a cut frees less than is worked out here.
"""

import os
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

SHARES: Final = (2, 4)  # a cut to a half and to a quarter
#: Seconds: twice the default of ``log.retention.check.interval.ms``. For so long a segment may be past its retention.
LOOKED_FOR: Final = 600.0
_ENTRY: Final = struct.Struct(">qi")
_INDEXES: Final = (".index", ".timeindex", ".txnindex")
_BLOCK: Final = 512


class Segment(NamedTuple):
    """A segment of a partition."""

    length: int  # bytes of its records
    used: int  # bytes that it takes on the disk, with its indexes
    newest: float  # when its newest record is from, in seconds since 1970


@dataclass(frozen=True, slots=True)
class Retention:
    """How long, or how much of each partition, a topic is kept on this broker."""

    seconds: float | None = None  # for ever
    size: int | None = None  # bytes of each partition; None for any number
    compacted: bool = False  # the topic is only compacted, so neither applies
    tiered: bool = False  # Kafka uploads its closed segments, and deletes none before

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """From a topic's properties. With tiered storage the local retention counts, since it is about this disk."""
        is_tiered = properties.get("remote.storage.enable") == "true"

        def kept(unit: str) -> int | None:
            local = int(properties.get(f"local.retention.{unit}", "-2"))
            # -2 stands for the retention of the whole topic.
            is_local = is_tiered and local != -2
            number = local if is_local else int(properties.get(f"retention.{unit}", "-1"))
            return number if number >= 0 else None

        millis = kept("ms")
        compacted = "delete" not in properties.get("cleanup.policy", "delete")
        return cls(None if millis is None else millis / 1000, kept("bytes"), compacted, is_tiered)

    @property
    def by_size(self) -> bool:
        return self.seconds is None and self.size is not None


@dataclass(frozen=True, slots=True)
class Cut:
    """What shorter retentions of one topic would free: ``freed`` has the bytes for each of SHARES."""

    topic: str
    kept: Retention  # now
    base: float | None  # the seconds, or bytes of a partition, that are cut; None if nothing is closed
    freed: Sequence[int]
    overdue: int = 0  # bytes that the present retention should have freed already; told of tiered topics alone


def cut(topic: str, kept: Retention, partitions: Iterable[str], now: float | None = None) -> Cut:
    """Work out the cuts of one topic from the segments in these directories (``now`` in seconds since 1970)."""
    now = time.time() if now is None else now
    logs = [segments(partition) for partition in partitions]

    def freed(limit: float, lately: float = 0.0) -> int:
        """Bytes that such a retention frees, without those that it could not free ``lately`` seconds ago."""
        size = 0
        for log in logs:
            left = sum(segment.length for segment in log)
            for segment in log[:-1]:
                left -= segment.length
                # By size, it counts from the segment's end, which came after its newest record.
                age = now - segment.newest
                is_past = left >= limit and (not lately or age > lately) if kept.by_size else age > limit + lately
                if not is_past:
                    break
                size += segment.used
        return size

    # A topic that is kept for ever is cut to a part of the age that it has.
    oldest = max((now - segment.newest for log in logs for segment in log[:-1]), default=None)
    limit = kept.size if kept.by_size else kept.seconds
    base = oldest if limit is None else limit
    overdue = freed(limit, LOOKED_FOR) if kept.tiered and limit is not None else 0
    return Cut(topic, kept, base, [0 if base is None else freed(base / share) for share in SHARES], overdue)


def segments(partition: str) -> list[Segment]:
    """Those in a partition's directory, the oldest first, the one in use last; without what has gone meanwhile."""
    found = []
    for log in sorted(Path(partition).glob("*.log")):
        with suppress(OSError):
            others = (log.with_suffix(suffix) for suffix in _INDEXES)
            files = [log.stat(), *(file.stat() for file in others if file.exists())]
            newest = _newest(log.with_suffix(".timeindex")) or files[0].st_mtime
            found.append(Segment(files[0].st_size, sum(file.st_blocks for file in files) * _BLOCK, newest))
    return found


def _newest(index: Path) -> float | None:
    """The timestamp of an index's last entry, in seconds since 1970; None if it has none."""
    try:
        # Root may be told of any user's directories (docs/security.md): no link is followed, no pipe waited for.
        with os.fdopen(os.open(index, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            file.seek(-_ENTRY.size, os.SEEK_END)
            millis, _ = _ENTRY.unpack(file.read())
    except (OSError, ValueError, struct.error):
        return None
    return millis / 1000 if millis > 0 else None
