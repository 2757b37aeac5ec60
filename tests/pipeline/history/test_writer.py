"""The history has each volume of each snapshot, and a restart neither loses nor repeats a reading."""

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import everything, readings_asked, with_clients
from quotahost.model import Limit, LimitType, QuotaType, Volume
from quotahost.model.volumes import byte_limits
from quotahost.pipeline import shares
from quotahost.pipeline.history import COLUMNS, USAGE_COLUMNS, readings, start_history, start_usage, usage_place, uses
from quotahost.records.usage import ClientKey, Usage, Used, encode
from tests.pipeline.support import records
from tests.pipeline.support.records import as_records
from tests.pipeline.support.rows import NOON, SNAPSHOT, frame, lines, reading, snapshot, written


def read_back(spark: SparkSession, *snapshots: dict[str, Any]) -> list[dict[str, Any]]:
    return [row.asDict() for row in readings(frame(spark, snapshots, SNAPSHOT)).collect()]


def test_each_volume_of_a_snapshot_is_a_row_with_the_bytes_at_which_its_limits_are_reached(spark: SparkSession) -> None:
    disks = [("/a", 1000, 600, ("MinFreePercentage", 20), ("MinFreeBytes", 50)), ("/b", 10, 3, None, None)]
    first, second = read_back(spark, snapshot(volumes=disks, broker="3", offset=9))
    assert (first["cluster"], first["broker"], first["volume"], first["consumed"]) == ("c", "3", "/a", 600)
    assert (first["soft"], first["hard"], first["capacity"]) == (800, 950, 1000)
    assert (first["topic"], first["partition"], first["offset"]) == ("t", 0, 9)
    assert (second["volume"], second["soft"], second["hard"]) == ("/b", None, None)


def test_a_removed_broker_and_one_without_volumes_leave_no_row(spark: SparkSession) -> None:
    assert read_back(spark, snapshot(volumes=None, removed=True), snapshot(volumes=[])) == []


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Adak"])
def test_the_day_is_that_of_utc_wherever_spark_runs(spark: SparkSession, zone: str) -> None:
    late = datetime(2026, 11, 21, 23, 59, 59, 999_000, tzinfo=UTC)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = read_back(
            spark, *(snapshot(at, [("/a", 1, 0, None, None)]) for at in (late, late + timedelta(seconds=1)))
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [row["day"] for row in found] == [date(2026, 11, 21), date(2026, 11, 22)]


SIZES = st.integers(0, 2**63 - 1)
LIMITS = st.one_of(
    st.tuples(st.sampled_from(["ConsumedBytes", "MinFreeBytes"]), SIZES),
    st.tuples(st.just("MinFreePercentage"), st.integers(0, 100)),
)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(SIZES, SIZES, LIMITS, LIMITS), min_size=1, max_size=40))
def test_limits_are_the_bytes_that_the_brokers_policy_goes_by(spark: SparkSession, each: list[tuple[Any, ...]]) -> None:
    found = read_back(spark, snapshot(volumes=[(str(n), *disk) for n, disk in enumerate(each)]))
    for row, (capacity, consumed, soft, hard) in zip(found, each, strict=True):
        volume = Volume("1", row["volume"], capacity, consumed)
        limits = [Limit(LimitType(kind), level) for kind, level in (soft, hard)]
        alone = [byte_limits(volume, None, limit) for limit in limits]
        assert [row["soft"], row["hard"]] == [one and one.hard for one in alone]


def test_restarts_neither_lose_nor_repeat_a_reading_and_deleted_days_are_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, history = tmp_path / "in", tmp_path / "history"
    source.mkdir()
    for number in range(3):
        days = [NOON + timedelta(days=number), NOON + timedelta(days=number + 1)]
        _send(source, number, [_line(at, number) for at in days])
        _run(spark, source, history)
    assert _stored(spark, history) == [(0, 21), (0, 22), (1, 22), (1, 23), (2, 23), (2, 24)]
    shutil.rmtree(history / "day=2026-11-22")
    assert _stored(spark, history) == [(0, 21), (1, 23), (2, 23), (2, 24)]


def test_a_batch_is_one_file_for_each_day(spark: SparkSession, tmp_path: Path) -> None:
    source, history = tmp_path / "in", tmp_path / "history"
    source.mkdir()
    for number in range(4):
        _send(source, number, [_line(NOON, number)])
    _run(spark, source, history)
    assert len(list(history.glob("day=2026-11-21/*.parquet"))) == 1
    assert len(_stored(spark, history)) == 4


def _line(at: datetime, offset: int) -> dict[str, Any]:
    return snapshot(at, [("/a", 10, 5, None, ("MinFreeBytes", 1))], offset=offset)


def _send(source: Path, number: int, rows: list[dict[str, Any]]) -> None:
    (source / f"{number}.json").write_text(lines(rows))


def _run(spark: SparkSession, source: Path, history: Path) -> None:
    stream: DataFrame = spark.readStream.schema(SNAPSHOT).json(str(source))
    query = start_history(stream, str(history), every=timedelta(milliseconds=50))
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def _stored(spark: SparkSession, history: Path) -> list[tuple[int, int]]:
    """Offset and day of each row."""
    return sorted((row["offset"], row["day"].day) for row in readings_asked(spark, Question(str(history))).collect())


# ---- usage -----------------------------------------------------------------------------------------


def used(rate: float, demand: float | None, user: str = "alice", kind: QuotaType = QuotaType.PRODUCE) -> Used:
    return Used(ClientKey(user, "app", kind), rate, demand, 1000.0)


def parsed(spark: SparkSession, *told: tuple[int, str, tuple[Used, ...]]) -> DataFrame:
    """Records of (seconds after NOON, broker, clients)."""
    made = [Usage(broker, NOON + timedelta(seconds=at), clients) for at, broker, clients in told]
    return shares.parse(records.frame(spark, as_records(made, encode)), "c")


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: (row["at"], row["broker"], row["user"]))


def test_a_minute_of_a_client_has_its_mean_rate_and_its_largest_demand(spark: SparkSession) -> None:
    fetch = used(5.0, None, kind=QuotaType.FETCH)
    told = [
        (0, "1", (used(100.0, 200.0), fetch)), (30, "1", (used(300.0, 400.0),)), (40, "2", (used(7.0, None),)),
        (60, "1", (used(1.0, 1.0),)),
    ]  # fmt: skip
    found = rows(uses(parsed(spark, *told), "c"))
    expected = [("1", 200.0, 400.0), ("2", 7.0, None), ("1", 1.0, 1.0)]
    assert [(r["broker"], r["rate"], r["demand"]) for r in found] == expected
    assert {(r["cluster"], r["user"], r["client"], r["quota"]) for r in found} == {("c", "alice", "app", 1000.0)}


def test_the_columns_are_those_declared(spark: SparkSession) -> None:
    usage = uses(parsed(spark, (0, "1", (used(1.0, 1.0),))), "c")
    for found, columns in ((readings(frame(spark, [], SNAPSHOT)), COLUMNS), (usage, USAGE_COLUMNS)):
        declared = cast("StructType", StructType.fromDDL(columns))
        assert [(f.name, f.dataType) for f in found.schema] == [(f.name, f.dataType) for f in declared]


def test_minutes_that_have_passed_are_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source, history = tmp_path / "in", tmp_path / "history"
    columns = ["clusterId", "brokerId", "ts", "clients", "error"]

    def feed(minute: int) -> None:
        batch = parsed(spark, *((60 * minute + 5 * i, "1", (used(10.0, 10.0),)) for i in range(12))).select(*columns)
        batch.coalesce(1).write.mode("append").parquet(str(source))

    feed(0)
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).parquet(str(source))
    for minute in (1, 20, 21):
        query = start_usage(stream, "c", str(history), every=timedelta(milliseconds=50))
        query.processAllAvailable()
        query.stop()
        feed(minute)
    query = start_usage(stream, "c", str(history), every=timedelta(milliseconds=50))
    query.processAllAvailable()
    query.stop()
    found = rows(spark.read.schema(USAGE_COLUMNS).parquet(usage_place(str(history))))
    assert [(row["at"].minute, row["rate"]) for row in found] == [(0, 10.0), (1, 10.0)]


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
