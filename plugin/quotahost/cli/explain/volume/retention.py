"""What a shorter retention of a topic would free on this volume.

Kafka deletes whole segments, the oldest first, and never the one that it appends to (LocalLog, UnifiedLog). By time it
deletes a segment whose newest record is older than the retention; the last entry of its ``.timeindex`` has that
record's timestamp (12 bytes: milliseconds, offset), which producers may have chosen. By size it deletes for as long as
what is left is at least the retention.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SHARES: Final = (2, 4)  # a cut to a half and to a quarter
_ENTRY: Final = struct.Struct(">qi")
_SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
_BLOCK: Final = 512


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that Kafka has closed.

    Attributes:
        length: bytes of its records.
        used: bytes that it takes on the disk, with its indexes.
        newest: when its newest record is from, in seconds since 1970; None if that isn't known.
    """

    length: int
    used: int
    newest: float | None


@dataclass(frozen=True, slots=True)
class Retention:
    """How long, or how much of each partition, a topic is kept on this broker.

    Attributes:
        seconds: None for ever.
        size: bytes of each partition; None for any number.
        compacted: the topic is only compacted, so neither applies.
    """

    seconds: float | None = None
    size: int | None = None
    compacted: bool = False


def of(properties: Mapping[str, str]) -> Retention:
    """From a topic's properties. With tiered storage the local retention counts, since it is about this disk."""
    local = properties.get("remote.storage.enable") == "true"
    time, size = (int(properties.get(name, "-1")) for name in ("retention.ms", "retention.bytes"))
    if local:
        # -2 stands for the retention of the whole topic.
        local_time, local_size = (int(properties.get(f"local.retention.{unit}", "-2")) for unit in ("ms", "bytes"))
        time, size = time if local_time == -2 else local_time, size if local_size == -2 else local_size
    compacted = "delete" not in properties.get("cleanup.policy", "delete")
    return Retention(time / 1000 if time >= 0 else None, size if size >= 0 else None, compacted)


def segments(partition: str) -> list[Segment]:
    """The closed segments of a partition's directory, the oldest first; what has gone meanwhile is left out."""
    names = sorted(file.stem for file in Path(partition).glob("*.log"))
    return [found for name in names[:-1] if (found := _segment(Path(partition, name))) is not None]


def _segment(base: Path) -> Segment | None:
    try:
        log = base.with_name(base.name + ".log").stat()
        parts = [part for suffix in _SUFFIXES if (part := base.with_name(base.name + suffix)).exists()]
        used = sum(part.stat().st_blocks * _BLOCK for part in parts)
        return Segment(log.st_size, used, _newest(base.with_name(base.name + ".timeindex")) or log.st_mtime)
    except OSError:
        return None


def _newest(index: Path) -> float | None:
    try:
        with index.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(end - end % _ENTRY.size - _ENTRY.size)
            millis, _ = _ENTRY.unpack(file.read(_ENTRY.size))
    except (OSError, ValueError, struct.error):
        return None
    return millis / 1000 if millis > 0 else None


def freed_by_time(partitions: Iterable[Sequence[Segment]], seconds: float, now: float) -> int:
    """Bytes that a retention of so many seconds would free at this moment (``now`` in seconds since 1970)."""
    return sum(_oldest_until(one, now - seconds) for one in partitions)


def _oldest_until(partition: Sequence[Segment], until: float) -> int:
    freed = 0
    for segment in partition:
        if segment.newest is None or segment.newest >= until:
            break
        freed += segment.used
    return freed


def freed_by_size(partitions: Iterable[tuple[Sequence[Segment], int]], size: int) -> int:
    """Bytes that a retention of so many bytes a partition would free; each with the bytes of all its records."""
    return sum(_oldest_beyond(closed, length - size) for closed, length in partitions)


def _oldest_beyond(partition: Sequence[Segment], surplus: int) -> int:
    freed = 0
    for segment in partition:
        surplus -= segment.length
        if surplus < 0:
            break
        freed += segment.used
    return freed
