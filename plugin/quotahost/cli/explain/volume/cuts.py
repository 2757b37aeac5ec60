"""What shorter retentions of a topic would free on one volume."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quotahost.broker.disks.measured import Look
from quotahost.cli.explain.volume import retention
from quotahost.cli.explain.volume.retention import SHARES, Retention, Segment


@dataclass(frozen=True, slots=True)
class Cut:
    """What shorter retentions of one topic would free.

    Attributes:
        topic: its name.
        kept: how long it is kept now.
        base: the seconds, or bytes of a partition, of which halves and quarters are taken; None if nothing is closed.
        by_size: ``base`` is in bytes.
        freed: for each of SHARES the bytes.
    """

    topic: str
    kept: Retention
    base: float | None
    by_size: bool
    freed: Sequence[int]


def cut(topic: str, kept: Retention, seen: Look, now: float | None = None) -> Cut:
    """Work out the cuts of one topic from the segments in its directories (``now`` in seconds since 1970)."""
    now = time.time() if now is None else now
    closed = {each: retention.segments(each) for each in seen.partitions.get(topic, [])}
    if kept.seconds is None and kept.size is not None:
        lengths = _lengths(seen)
        sized = [(parts, lengths.get(each, 0)) for each, parts in closed.items()]
        freed = [retention.freed_by_size(sized, kept.size // share) for share in SHARES]
        return Cut(topic, kept, kept.size, by_size=True, freed=freed)
    # A topic that is kept for ever is cut to a part of the age that it has.
    base = kept.seconds if kept.seconds is not None else _age(closed, now)
    freed = [0 if base is None else retention.freed_by_time(closed.values(), base / share, now) for share in SHARES]
    return Cut(topic, kept, base, by_size=False, freed=freed)


def _age(closed: Mapping[str, Sequence[Segment]], now: float) -> float | None:
    ages = [now - part.newest for parts in closed.values() for part in parts if part.newest is not None]
    return max(ages, default=None)


def _lengths(seen: Look) -> dict[str, int]:
    """The bytes of records in each partition's directory."""
    lengths: dict[str, int] = defaultdict(int)
    for path, (_, length) in seen.logs.items():
        lengths[str(Path(path).parent)] += length
    return lengths
