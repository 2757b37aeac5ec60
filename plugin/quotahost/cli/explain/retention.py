"""What a shorter retention of a topic would free on one volume.

Kafka deletes whole segments, the oldest first, and never the one that it appends to (LocalLog, UnifiedLog). By time it
deletes a segment whose newest record is older than the retention; the last entry of its ``.timeindex`` has that
record's timestamp (12 bytes: milliseconds, offset), which producers may have chosen. By size it deletes for as long as
what is left is at least the retention.

With tiered storage (KIP-405) Kafka deletes no segment that it has not uploaded yet, however old it is. Which ones it
has uploaded, no file says. But one that is past its retention for longer than Kafka takes to look for such segments
(:data:`LOOKED_FOR`) is most likely waiting for its upload: then a cut frees less than is worked out here.
"""

import os
import stat
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Final, NamedTuple, Self

from quotahost.broker.disks.topics import Look

SHARES: Final = (2, 4)  # a cut to a half and to a quarter
#: Seconds: twice the default of ``log.retention.check.interval.ms``. For so long a segment may be past its retention.
LOOKED_FOR: Final = 600.0
_ENTRY: Final = struct.Struct(">qi")
_SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
_BLOCK: Final = 512


class Segment(NamedTuple):
    """A segment that Kafka has closed."""

    length: int  # bytes of its records
    used: int  # bytes that it takes on the disk, with its indexes
    newest: float | None  # when its newest record is from, in seconds since 1970; None if that isn't known


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
        time, size = (int(properties.get(f"retention.{unit}", "-1")) for unit in ("ms", "bytes"))
        if is_tiered:
            # -2 stands for the retention of the whole topic.
            local_time, local_size = (int(properties.get(f"local.retention.{unit}", "-2")) for unit in ("ms", "bytes"))
            time, size = time if local_time == -2 else local_time, size if local_size == -2 else local_size
        compacted = "delete" not in properties.get("cleanup.policy", "delete")
        return cls(time / 1000 if time >= 0 else None, size if size >= 0 else None, compacted, is_tiered)


@dataclass(frozen=True, slots=True)
class Cut:
    """What shorter retentions of one topic would free: ``freed`` has the bytes for each of SHARES."""

    topic: str
    kept: Retention  # now
    base: float | None  # the seconds, or bytes of a partition, that are cut; None if nothing is closed
    by_size: bool  # ``base`` is in bytes
    freed: Sequence[int]
    overdue: int = 0  # bytes that the present retention should have freed already; told of tiered topics alone


def cut(topic: str, kept: Retention, seen: Look, now: float | None = None) -> Cut:
    """Work out the cuts of one topic from the segments in its directories (``now`` in seconds since 1970)."""
    now = time.time() if now is None else now
    closed = {directory: segments(directory) for directory in seen.partitions.get(topic, [])}
    if kept.seconds is None and kept.size is not None:
        lengths = Counter[str]()  # bytes of records in each partition's directory
        for path, (_, length) in seen.logs.items():
            lengths[str(Path(path).parent)] += length
        surplus = [(parts, lengths[directory]) for directory, parts in closed.items()]
        freed = [sum(_beyond(parts, length - kept.size // share) for parts, length in surplus) for share in SHARES]
        # A segment was closed after its newest record; one that was closed lately may still be looked for.
        settled = [([part for part in parts if _is_older(part, now - LOOKED_FOR)], length) for parts, length in surplus]
        overdue = sum(_beyond(parts, length - kept.size) for parts, length in settled) if kept.tiered else 0
        return Cut(topic, kept, kept.size, True, freed, overdue)
    # A topic that is kept for ever is cut to a part of the age that it has.
    ages = [now - part.newest for parts in closed.values() for part in parts if part.newest is not None]
    base = kept.seconds if kept.seconds is not None else max(ages, default=None)
    freed = [
        0 if base is None else sum(_until(parts, now - base / share) for parts in closed.values()) for share in SHARES
    ]
    overdue = 0
    if kept.tiered and kept.seconds is not None:
        overdue = sum(_until(parts, now - kept.seconds - LOOKED_FOR) for parts in closed.values())
    return Cut(topic, kept, base, False, freed, overdue)


def segments(partition: str) -> list[Segment]:
    """The closed segments of a partition's directory, the oldest first; what has gone meanwhile is left out."""
    names = sorted(file.stem for file in Path(partition).glob("*.log"))
    read = [_segment(Path(partition, name)) for name in names[:-1]]
    return [segment for segment in read if segment is not None]


def _segment(base: Path) -> Segment | None:
    try:
        log = base.with_name(base.name + ".log").stat()
        parts = [part for suffix in _SUFFIXES if (part := base.with_name(base.name + suffix)).exists()]
        used = sum(part.stat().st_blocks * _BLOCK for part in parts)
        return Segment(log.st_size, used, _newest(base.with_name(base.name + ".timeindex")) or log.st_mtime)
    except OSError:
        return None


def _newest(index: Path) -> float | None:
    """The timestamp of an index's last entry, in seconds since 1970; None if it has none."""
    try:
        # Root may look at the files of another user: a pipe or a link among them is not waited for, or followed.
        descriptor = os.open(index, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            file.seek(status.st_size - status.st_size % _ENTRY.size - _ENTRY.size)
            millis, _ = _ENTRY.unpack(file.read(_ENTRY.size))
    except (OSError, ValueError, struct.error):
        return None
    return millis / 1000 if millis > 0 else None


def _until(closed: Sequence[Segment], until: float) -> int:
    """Bytes of the oldest segments whose newest records are from before ``until``, in seconds since 1970."""
    return sum(segment.used for segment in takewhile(lambda segment: _is_older(segment, until), closed))


def _is_older(segment: Segment, until: float) -> bool:
    return segment.newest is not None and segment.newest < until


def _beyond(closed: Sequence[Segment], surplus: int) -> int:
    """Bytes of the oldest segments that a partition can lose if it has so many bytes of records too much."""
    lengths = accumulate(segment.length for segment in closed)
    return sum(segment.used for segment, length in zip(closed, lengths, strict=True) if length <= surplus)
