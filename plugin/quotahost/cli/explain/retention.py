"""``explain --volume`` works out the bytes that a shorter retention of a topic would free, from its closed segments.

1. If the broker doesn't tell a topic's retention, the age of its oldest closed segment stands in for it.
2. Kafka deletes whole segments, the oldest first, and never the active one (LocalLog, UnifiedLog). Retention by time
   deletes a segment whose latest record is older than the retention. The last entry of its ``.timeindex`` has that
   record's timestamp (12 bytes: milliseconds, offset), which producers may have chosen. Retention by size deletes
   segments as long as at least the retention is left.
3. With tiered storage (KIP-405) Kafka deletes no segment before its upload, however old it is. No file says which
   segments are uploaded. But a segment that is past its retention for longer than Kafka takes to look for such segments
   (:data:`LOOKED_FOR`) most likely waits for its upload: then a cut frees less than is computed here.
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
#: Seconds, twice the default of ``log.retention.check.interval.ms``: a segment may outlive its retention for so long.
LOOKED_FOR: Final = 600.0
_ENTRY: Final = struct.Struct(">qi")
_INDEXES: Final = (".index", ".timeindex", ".txnindex")
_BLOCK: Final = 512


class Segment(NamedTuple):
    """A segment of a partition."""

    length: int  # bytes of its records
    used: int  # bytes that the segment and its indexes take on the disk
    latest: float  # the timestamp of its latest record, in seconds since 1970


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a topic on this broker, by time and by size."""

    seconds: float | None = None  # None means for ever
    size: int | None = None  # bytes of each partition; None means any number
    compacted: bool = False  # the topic is only compacted, so no retention applies
    tiered: bool = False  # Kafka deletes a closed segment only after its upload

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Read a topic's properties. With tiered storage the local retention counts, because it is for this disk."""
        is_tiered = properties.get("remote.storage.enable") == "true"
        # -2 is Kafka's default, and means that retention.ms or retention.bytes applies to this disk, too.
        local = {unit: int(properties.get(f"local.retention.{unit}", "-2")) for unit in ("ms", "bytes")}

        def kept(unit: str) -> int | None:
            number = local[unit] if is_tiered and local[unit] != -2 else int(properties.get(f"retention.{unit}", "-1"))
            return number if number >= 0 else None

        # If only the local size is set, it frees this disk before the time for which the other tier keeps the records.
        size_alone = is_tiered and local["ms"] == -2 and local["bytes"] >= 0
        millis = None if size_alone else kept("ms")
        compacted = "delete" not in properties.get("cleanup.policy", "delete")
        return cls(None if millis is None else millis / 1000, kept("bytes"), compacted, is_tiered)

    @property
    def by_size(self) -> bool:
        return self.seconds is None and self.size is not None


@dataclass(frozen=True, slots=True)
class Cut:
    """The bytes that shorter retentions of one topic would free: ``freed`` has one number for each of SHARES."""

    topic: str
    kept: Retention  # the present retention
    base: float | None  # the seconds, or bytes of a partition, that are cut; None if no segment is closed
    freed: Sequence[int]
    overdue: int = 0  # bytes that the present retention should have freed already; only for tiered topics


def cut(topic: str, kept: Retention, partitions: Iterable[str], now: float | None = None) -> Cut:
    """Work out the cuts of one topic from the segments in these directories (``now`` in seconds since 1970)."""
    now = time.time() if now is None else now
    logs = [segments(partition) for partition in partitions]

    def freed(limit: float, lately: float = 0.0) -> int:
        """Bytes that this retention frees; with ``lately``, only those that it could free ``lately`` seconds ago."""
        size = 0
        for log in logs:
            left = sum(segment.length for segment in log)
            for segment in log[:-1]:
                left -= segment.length
                # For a retention by size, the time counts from the segment's end, which is after its latest record.
                age = now - segment.latest
                is_past = left >= limit and (not lately or age > lately) if kept.by_size else age > limit + lately
                if not is_past:
                    break
                size += segment.used
        return size

    # For a topic that is kept for ever, the age of its oldest closed segment is cut.
    oldest = max((now - segment.latest for log in logs for segment in log[:-1]), default=None)
    limit = kept.size if kept.by_size else kept.seconds
    base = oldest if limit is None else limit
    overdue = freed(limit, LOOKED_FOR) if kept.tiered and limit is not None else 0
    return Cut(topic, kept, base, [0 if base is None else freed(base / share) for share in SHARES], overdue)


def segments(partition: str) -> list[Segment]:
    """The segments in a partition's directory, the oldest first and the active one last; files may vanish meanwhile."""
    found = []
    for log in sorted(Path(partition).glob("*.log")):
        with suppress(OSError):
            others = (log.with_suffix(suffix) for suffix in _INDEXES)
            files = [log.stat(), *(file.stat() for file in others if file.exists())]
            latest = _latest(log.with_suffix(".timeindex")) or files[0].st_mtime
            found.append(Segment(files[0].st_size, sum(file.st_blocks for file in files) * _BLOCK, latest))
    return found


def _latest(index: Path) -> float | None:
    """The timestamp of an index's last entry, in seconds since 1970; None if the index has no entry."""
    try:
        # A false answer may lead root to any user's directory (docs/security.md), so no link is followed, and no pipe
        # is waited for.
        with os.fdopen(os.open(index, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            file.seek(-_ENTRY.size, os.SEEK_END)
            millis, _ = _ENTRY.unpack(file.read())
    except (OSError, ValueError, struct.error):
        return None
    return millis / 1000 if millis > 0 else None
