"""Readings as the history has them."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from quotahost.pipeline.history import COLUMNS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def reading(seconds: float, consumed: int, **other: Any) -> dict[str, Any]:
    """One row of the history, so many seconds after NOON; a volume of 1,000 bytes, hard limit 900, soft 800."""
    at = NOON + timedelta(seconds=seconds)
    row: dict[str, Any] = {"cluster": "c", "broker": "1", "volume": "/d", "at": at}
    row |= {"capacity": 1000, "consumed": consumed, "soft": 800, "hard": 900}
    return row | {"topic": "t", "partition": 0, "offset": 0, "day": at.date()} | other


def frame(spark: SparkSession, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    # As JSON: rows of Python's own would start Python workers.
    text = json.dumps(list(rows), default=lambda value: value.isoformat())
    return spark.sql(f"SELECT inline(from_json(:rows, 'ARRAY<STRUCT<{COLUMNS}>>'))", {"rows": text})


def written(spark: SparkSession, rows: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """A history that holds these rows."""
    frame(spark, rows).write.partitionBy("day").mode("append").parquet(str(folder))
    return folder
