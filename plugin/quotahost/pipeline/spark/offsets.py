"""How far a query has read, by Kafka's offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

#: The offset after the last record, by topic and partition.
Offsets = Mapping[tuple[str, str], int]


def offsets(told: Any) -> Offsets:
    """From Spark's JSON, as text or read; a batch that is done again after a restart may have null there."""
    topics = json.loads(told) if isinstance(told, str) else told
    return {(topic, p): offset for topic, parts in (topics or {}).items() for p, offset in parts.items()}


def behind(source: Mapping[str, Any]) -> int:
    """How many records of a source, as a query's progress has it, are not read yet."""
    end, latest = offsets(source.get("endOffset")), offsets(source.get("latestOffset"))
    return sum(max(0, offset - end.get(at, 0)) for at, offset in latest.items())


def idle(progress: Mapping[str, Any]) -> bool:
    """Whether a query's progress tells of no batch, but of a look that found nothing to do."""
    return "addBatch" not in progress["durationMs"]


def under_way(query: StreamingQuery) -> tuple[Offsets, Offsets]:
    """From where to where the batch reads that the query does now.

    Spark's public interface tells it when the batch has ended only, so this goes by its own classes (4.2).

    Raises:
        Py4JError: this Spark has others.
    """
    execution: Any = query._jsq.streamingQuery()
    return _all(execution.committedOffsets()), _all(execution.availableOffsets())


def _all(sources: Any) -> Offsets:
    values = sources.values().toList()
    return {
        at: offset
        for index in range(values.size())
        for at, offset in offsets(values.apply(index).json()).items()
    }
