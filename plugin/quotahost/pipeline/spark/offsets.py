"""How far a query has read, by Kafka's offsets in the progress that Spark reports for each batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

#: The offset after the last record that was read, by topic and partition.
Offsets = Mapping[tuple[str, str], int]


def offsets(reported: Any) -> Offsets:
    """From Spark's JSON, as text or decoded; null, as in a batch that is done again after a restart, is no offset."""
    topics = json.loads(reported) if isinstance(reported, str) else reported
    return {(topic, p): offset for topic, parts in (topics or {}).items() for p, offset in parts.items()}


def behind(source: Mapping[str, Any]) -> int:
    """How many records of a source, as in a query's progress, are not read yet."""
    end, latest = offsets(source.get("endOffset")), offsets(source.get("latestOffset"))
    return sum(max(0, offset - end.get(at, 0)) for at, offset in latest.items())


def lost(source: Mapping[str, Any]) -> list[str]:
    """The topics, with their partitions, that end before the place up to which a query has read them.

    A topic that is deleted and made again begins with 0, and Spark would wait until it is as long as the old one was.
    """
    end, latest = offsets(source.get("endOffset")), offsets(source.get("latestOffset"))
    return [f"{topic}-{p}" for (topic, p), offset in end.items() if latest.get((topic, p), offset) < offset]


def idle(progress: Mapping[str, Any]) -> bool:
    """Whether a query's progress is that of no batch, but of a look that found nothing to read."""
    return "addBatch" not in progress["durationMs"]
