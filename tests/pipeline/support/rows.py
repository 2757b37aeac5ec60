"""Readings as the history has them, and what clients used as brokers tell it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from quotahost.model import QuotaType
from quotahost.pipeline.history import COLUMNS
from quotahost.records.usage import Usage, Used

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WRITE, READ = QuotaType.PRODUCE, QuotaType.FETCH


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
    frame(spark, rows).write.partitionBy("day").mode("append").parquet(str(folder))
    return folder


def used(
    rate: float, user: str = "alice", client: str = "app", kind: QuotaType = WRITE, demand: float | None = None
) -> Used:
    """In a record that comes 10 s after the one before."""
    return Used(user, client, kind, rate, demand, 1e6, 10 * rate)


def told(*records: tuple[float, str, Sequence[Used]]) -> list[Usage]:
    """Records of (seconds after NOON, broker, clients)."""
    return [Usage(broker, NOON + timedelta(seconds=at), tuple(clients), "c") for at, broker, clients in records]
