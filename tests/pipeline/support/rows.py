"""Snapshots and readings as the pipeline's rows."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from quotahost.pipeline.history import COLUMNS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LIMIT = "struct<type:string,level:bigint>"
SNAPSHOT = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, cluster STRING, broker STRING, at TIMESTAMP,"
    f" removed BOOLEAN, volumes array<struct<name:string,capacity:bigint,consumed:bigint,soft:{LIMIT},hard:{LIMIT}>>,"
    " offline array<string>, error STRING"
)


def snapshot(at: datetime = NOON, volumes: Iterable[tuple[Any, ...]] | None = (), **other: Any) -> dict[str, Any]:
    """One parsed record; each volume is (name, capacity, consumed, soft, hard), limits (type, level) or None."""
    row: dict[str, Any] = {"topic": "t", "partition": 0, "offset": 7, "timestamp": at}
    row |= {"cluster": "c", "broker": "1", "at": at, "removed": False}
    made = None if volumes is None else [_volume(*volume) for volume in volumes]
    return row | {"volumes": made, "offline": [], "error": None} | other


def _volume(name: str, capacity: int, consumed: int, *limits: tuple[str, int] | None) -> dict[str, Any]:
    soft, hard = (limit and dict(zip(("type", "level"), limit, strict=True)) for limit in limits)
    return {"name": name, "capacity": capacity, "consumed": consumed, "soft": soft, "hard": hard}


def reading(seconds: float, consumed: int, **other: Any) -> dict[str, Any]:
    """One row of the history, so many seconds after NOON; a volume of 1,000 bytes, hard limit 900, soft 800."""
    at = NOON + timedelta(seconds=seconds)
    row: dict[str, Any] = {"cluster": "c", "broker": "1", "volume": "/d", "at": at}
    row |= {"capacity": 1000, "consumed": consumed, "soft": 800, "hard": 900}
    return row | {"topic": "t", "partition": 0, "offset": 0, "day": at.date()} | other


def frame(spark: SparkSession, rows: Iterable[Mapping[str, Any]], schema: str = COLUMNS) -> DataFrame:
    # As JSON: rows of Python's own would start Python workers.
    return spark.sql(
        f"SELECT inline(from_json(:rows, 'ARRAY<STRUCT<{schema}>>'))", {"rows": lines(rows, "[", ",", "]")}
    )


def lines(rows: Iterable[Mapping[str, Any]], first: str = "", between: str = "\n", last: str = "") -> str:
    """The rows as JSON."""
    return first + between.join(json.dumps(row, default=lambda value: value.isoformat()) for row in rows) + last


def written(spark: SparkSession, rows: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """A history that holds these rows."""
    frame(spark, rows).write.partitionBy("day").mode("append").parquet(str(folder))
    return folder
