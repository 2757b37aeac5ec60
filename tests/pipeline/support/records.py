"""Records of the snapshots topic, for tests."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from tests.reference.volumes import Record

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_MS: Final = int(NOW.timestamp() * 1000)
TOPIC: Final = "snapshots"
_SCHEMA: Final = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def volume(name: str, capacity: int, consumed: int, **more: Any) -> dict[str, Any]:
    return {"volumeName": name, "capacity": capacity, "consumed": consumed, **more}


def limit(kind: str, level: int) -> dict[str, Any]:
    return {"type": kind, "level": level}


def snapshot(broker: str, at: datetime, volumes: Sequence[dict[str, Any] | None], **more: Any) -> bytes:
    fields = {
        "brokerId": broker,
        "snapshotAt": at.isoformat().replace("+00:00", "Z"),
        "softLimit": {},
        "hardLimit": {},
        "volumes": list(volumes),
    }
    return json.dumps(fields | more).encode()


def record(offset: int, key: str | None, value: bytes | None, at: datetime = NOW, topic: str = TOPIC) -> Record:
    return Record(topic, 0, offset, at, None if key is None else key.encode(), value)


def frame(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    rows = [(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value) for r in records]
    return spark.createDataFrame(rows, _SCHEMA)
