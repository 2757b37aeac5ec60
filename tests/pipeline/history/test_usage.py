"""The history of usage: each client's minutes, each once, written beside the history of volumes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import everything, with_clients
from quotahost.model import QuotaType
from quotahost.pipeline import shares
from quotahost.pipeline.history import USAGE_COLUMNS, start_usage, usage_place, uses
from quotahost.records.usage import ClientKey, Usage, Used, encode
from tests.pipeline.support.rows import reading, written
from tests.pipeline.test_shares import raw

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def used(rate: float, demand: float | None, user: str = "alice", kind: QuotaType = QuotaType.PRODUCE) -> Used:
    return Used(ClientKey(user, "app", kind), rate, demand, 1000.0)


def parsed(spark: SparkSession, *records: tuple[int, str, tuple[Used, ...]]) -> DataFrame:
    """Records of (seconds after NOON, broker, clients)."""
    made = [Usage(broker, NOON + timedelta(seconds=at), clients) for at, broker, clients in records]
    given = raw(spark, [(each.broker.encode(), encode(each)) for each in made], each_at=[e.captured_at for e in made])
    return shares.parse(given, "c")


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: (row["at"], row["broker"], row["user"]))


def test_a_minute_of_a_client_has_its_mean_rate_and_its_largest_demand(spark: SparkSession) -> None:
    fetch = used(5.0, None, kind=QuotaType.FETCH)
    found = rows(
        uses(
            parsed(
                spark,
                (0, "1", (used(100.0, 200.0), fetch)),
                (30, "1", (used(300.0, 400.0),)),
                (40, "2", (used(7.0, None),)),
                (60, "1", (used(1.0, 1.0),)),
            ),
            "c",
        )
    )
    assert [(r["broker"], r["rate"], r["demand"]) for r in found] == [
        ("1", 200.0, 400.0),
        ("2", 7.0, None),
        ("1", 1.0, 1.0),
    ]
    assert {(r["cluster"], r["user"], r["client"], r["quota"]) for r in found} == {("c", "alice", "app", 1000.0)}


def test_the_columns_are_those_declared(spark: SparkSession) -> None:
    found = uses(parsed(spark, (0, "1", (used(1.0, 1.0),))), "c").schema
    declared = cast("StructType", StructType.fromDDL(USAGE_COLUMNS))
    assert [(f.name, f.dataType) for f in found] == [(f.name, f.dataType) for f in declared]


def test_minutes_that_have_passed_are_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source, history = tmp_path / "in", tmp_path / "history"
    columns = ["clusterId", "brokerId", "ts", "clients", "error"]

    def feed(minute: int) -> None:
        batch = parsed(spark, *((60 * minute + 5 * i, "1", (used(10.0, 10.0),)) for i in range(12))).select(*columns)
        batch.coalesce(1).write.mode("append").parquet(str(source))

    feed(0)
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).parquet(str(source))
    for minute in (1, 2, 20, 21):
        query = start_usage(stream, "c", str(history), every=timedelta(milliseconds=50))
        query.processAllAvailable()
        query.stop()
        feed(minute)
    query = start_usage(stream, "c", str(history), every=timedelta(milliseconds=50))
    query.processAllAvailable()
    query.stop()
    found = rows(spark.read.schema(USAGE_COLUMNS).parquet(usage_place(str(history))))
    assert [(row["at"].minute, row["rate"]) for row in found] == [(0, 10.0), (1, 10.0), (2, 10.0)]


def test_a_replay_reads_the_busiest_clients_of_its_time(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [reading(60 * i, 100) for i in range(10)], tmp_path / "history")
    question = Question(str(history))
    assert everything(spark, question).clients is None
    minutes = [(60 * i, "1", (used(10.0, None), used(5.0, 6.0, "bob"))) for i in range(20)]
    frame = uses(parsed(spark, *minutes), "c")
    frame.write.partitionBy("day").mode("append").parquet(usage_place(str(history)))
    alice, bob = everything(spark, question).clients or ()
    assert (alice.user, bob.user, alice.client, alice.width) == ("alice", "bob", "app", 60.0)
    assert [use.at - NOON.timestamp() for use in alice.uses] == [60.0 * i for i in range(10)]
    assert alice.uses[0][1:] == ("1", 10.0, None, 1000.0)
    assert bob.uses[0][1:] == ("1", 5.0, 6.0, 1000.0)
    few = with_clients(spark, everything(spark, question), most=8).clients or ()
    assert [(len(each.uses), each.width) for each in few] == [(4, 180.0), (4, 180.0)]
