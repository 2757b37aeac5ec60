"""Records of Kafka and readings of the history for tests of Spark's queries, which are planned once for many tests."""

import json
from base64 import b64encode
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from pyspark.sql import DataFrame, Row, SparkSession

from harness.rollup import Record
from quotahost.pipeline.history import COLUMNS
from quotahost.records.snapshot import Snapshot
from quotahost.records.usage import Usage

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_MS: Final = int(NOW.timestamp() * 1000)
TOPIC: Final = "snapshots"
_Told = TypeVar("_Told", Snapshot, Usage)
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


def sent(made: Iterable[_Told], encode: Callable[[_Told], bytes]) -> list[Record]:
    """The records that brokers publish, each written when it was captured."""
    return [record(n, told.broker, encode(told), told.captured_at) for n, told in enumerate(made)]


def frame(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    rows = [(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value) for r in records]
    return spark.createDataFrame(rows, _SCHEMA)


NOON: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)


def reading(seconds: float, consumed: int, **other: Any) -> dict[str, Any]:
    """One row of the history, so many seconds after NOON; a volume of 1,000 bytes, hard limit 900, soft 800."""
    at = NOON + timedelta(seconds=seconds)
    row: dict[str, Any] = {"cluster": "c", "broker": "1", "volume": "/d", "at": at}
    row |= {"capacity": 1000, "consumed": consumed, "soft": 800, "hard": 900}
    return row | {"topic": "t", "partition": 0, "offset": 0, "day": at.date()} | other


def written(spark: SparkSession, rows: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    # The rows are JSON, because Python's own rows would start Python workers.
    text = json.dumps(list(rows), default=lambda value: value.isoformat())
    made = spark.sql(f"SELECT inline(from_json(:rows, 'ARRAY<STRUCT<{COLUMNS}>>'))", {"rows": text})
    made.write.partitionBy("day").mode("append").parquet(str(folder))
    return folder


class Log:
    """A directory of files that stands for Kafka's topics, for streams."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory, self._files = directory, 0

    def write(self, *records: Record) -> None:
        hidden = self._directory / f".{self._files}"
        hidden.write_text("".join(map(_line, records)))
        hidden.rename(self._directory / f"{self._files}.json")
        self._files += 1

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(_SCHEMA).json(str(self._directory))


class Planned:
    """A query over records, which Spark plans once: planning takes seconds of a core, a few records take a fraction.

    Spark reads the records from a file that each call replaces. The plan knows the file's length, so blanks fill the
    file up to a power of two. All is one partition, because Spark would keep shuffled data for the next call.
    """

    def __init__(self, build: Callable[..., DataFrame]) -> None:
        """``build`` makes the query from a frame of records and the arguments of a call."""
        self._build, self._queries = build, dict[tuple[Hashable, ...], tuple[DataFrame, Path]]()
        self._directory = TemporaryDirectory()

    def __call__(self, spark: SparkSession, records: Sequence[Record], *arguments: Hashable) -> list[Row]:
        return self._query(spark, records, arguments).collect()

    def frame(self, spark: SparkSession, records: Sequence[Record], *arguments: Hashable) -> DataFrame:
        """The query's rows without the query, as ``foreachBatch`` gets the rows of a stream."""
        query = self._query(spark, records, arguments)
        return spark.createDataFrame(query.collect(), query.schema)

    def _query(self, spark: SparkSession, records: Sequence[Record], arguments: tuple[Hashable, ...]) -> DataFrame:
        text = "".join(map(_line, records))
        length = 1 << max(16, len(text).bit_length())
        key = (spark, length, *arguments)
        if key not in self._queries:
            file = Path(self._directory.name, f"{len(self._queries)}.json")
            file.write_text(" " * length)
            self._queries[key] = self._build(spark.read.schema(_SCHEMA).json(str(file)).coalesce(1), *arguments), file
        query, file = self._queries[key]
        file.write_text(text.ljust(length))
        return query


def _line(record: Record) -> str:
    fields = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    bytes_of = {"key": record.key, "value": record.value}
    coded = {name: b64encode(part).decode() for name, part in bytes_of.items() if part is not None}
    return json.dumps(fields | {"timestamp": record.timestamp.isoformat()} | coded) + "\n"
