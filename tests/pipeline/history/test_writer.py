"""The history has each volume of each snapshot, and a restart neither loses nor repeats a reading."""

import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import everything, readings_asked, with_clients
from quotahost.model import Limit, LimitType, Volume
from quotahost.model.volumes import byte_limits
from quotahost.pipeline import shares, snapshots
from quotahost.pipeline.history import append, folder, readings, uses
from quotahost.records.usage import encode
from tests.pipeline.support.records import Log, Planned, as_records, frame, limit, record, snapshot, volume
from tests.pipeline.support.rows import NOON, READ, reading, told, used, written

READINGS = Planned(lambda given: readings(snapshots.parse(given, {"snapshots": "c"})))


def test_each_volume_of_a_snapshot_is_a_row_with_the_bytes_at_which_its_limits_are_reached(spark: SparkSession) -> None:
    own = {"softLimit": limit("MinFreePercentage", 20), "hardLimit": limit("MinFreeBytes", 50)}
    disks = [volume("/a", 1000, 600, **own), volume("/b", 10, 3, softLimit={})]
    broker = {"softLimit": limit("ConsumedBytes", 7)}
    good = snapshot("3", NOON, disks, **broker)
    # A removed broker, one without volumes, and a refused record leave no row.
    given = [record(9, "3", good, NOON), record(10, "3", None, NOON), record(11, "4", snapshot("4", NOON, []), NOON)]
    first, second = READINGS(spark, [*given, record(12, "5", good, NOON)])
    assert (first["cluster"], first["broker"], first["volume"], first["consumed"]) == ("c", "3", "/a", 600)
    assert (first["soft"], first["hard"], first["capacity"]) == (800, 950, 1000)
    assert (first["topic"], first["partition"], first["offset"]) == ("snapshots", 0, 9)
    assert (second["volume"], second["soft"], second["hard"]) == ("/b", 7, None)


SIZES = st.integers(0, 2**63 - 1)
LIMITS = st.one_of(
    st.builds(limit, st.sampled_from(["ConsumedBytes", "MinFreeBytes"]), SIZES),
    st.builds(limit, st.just("MinFreePercentage"), st.integers(0, 100)),
)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(SIZES, SIZES, LIMITS, LIMITS), min_size=1, max_size=40))
def test_limits_are_the_bytes_that_the_brokers_policy_goes_by(spark: SparkSession, each: list[tuple[Any, ...]]) -> None:
    disks = [volume(str(n), size, used, softLimit=s, hardLimit=h) for n, (size, used, s, h) in enumerate(each)]
    found = READINGS(spark, [record(0, "1", snapshot("1", NOON, disks), NOON)])
    for row, (capacity, consumed, *limits) in zip(found, each, strict=True):
        of = Volume("1", row["volume"], capacity, consumed)
        alone = [byte_limits(of, None, Limit(LimitType(each["type"]), each["level"])) for each in limits]
        assert [row["soft"], row["hard"]] == [one and one.hard for one in alone]


def test_restarts_neither_lose_nor_repeat_a_reading_and_a_batch_is_one_file_for_each_day(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, history = Log(tmp_path / "in"), tmp_path / "history"

    def stored() -> list[tuple[int, int]]:
        """Offset and day of each row."""
        rows = readings_asked(spark, Question(str(history))).collect()
        return sorted((row["offset"], row["day"].day) for row in rows)

    for number in range(3):
        for days in (number, number + 1):
            at = NOON + timedelta(days=days)
            log.write(record(number, "1", snapshot("1", at, [volume("/a", 10, 5)]), at))
        parsed = snapshots.parse(log.stream(spark), {"snapshots": "c"})
        query = append(parsed, "history", str(history), every=timedelta(milliseconds=50))
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    assert stored() == [(0, 21), (0, 22), (1, 22), (1, 23), (2, 23), (2, 24)]
    files = Counter(file.parent.name for file in history.glob("day=*/*.parquet"))
    assert files == {"day=2026-11-21": 1, "day=2026-11-22": 2, "day=2026-11-23": 2, "day=2026-11-24": 1}
    # Of a deleted day nothing is known any more.
    shutil.rmtree(history / "day=2026-11-22")
    assert stored() == [(0, 21), (1, 23), (2, 23), (2, 24)]


# ---- usage -----------------------------------------------------------------------------------------


def test_a_minute_of_a_client_has_its_mean_rate_and_its_largest_demand(spark: SparkSession) -> None:
    usage = told(
        (0, "1", [used(100.0, demand=200.0), used(5.0, kind=READ)]), (30, "1", [used(300.0, demand=400.0)]),
        (40, "2", [used(7.0)]), (60, "1", [used(1.0, demand=1.0)]),
    )  # fmt: skip
    rows = uses(shares.parse(frame(spark, as_records(usage, encode)), "c")).orderBy("at", "broker").collect()
    expected = [("1", 200.0, 400.0), ("2", 7.0, None), ("1", 1.0, 1.0)]
    assert [(r["broker"], r["rate"], r["demand"]) for r in rows] == expected
    assert {(r["cluster"], r["user"], r["client"], r["quota"]) for r in rows} == {("c", "alice", "app", 1e6)}


def test_a_replay_reads_the_busiest_clients_of_its_time(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [reading(60 * i, 100) for i in range(10)], tmp_path / "history")
    question = Question(str(history))
    assert everything(spark, question).clients is None
    usage = told(*((60 * i, "1", [used(10.0), used(5.0, "bob", demand=6.0)]) for i in range(20)))
    minutes = uses(shares.parse(frame(spark, as_records(usage, encode)), "c"))
    minutes.write.partitionBy("day").parquet(folder(str(history), "usage"))
    alice, bob = everything(spark, question).clients or ()
    assert (alice.user, bob.user, alice.client, alice.width) == ("alice", "bob", "app", 60.0)
    assert [use.at - NOON.timestamp() for use in alice.uses] == [60.0 * i for i in range(10)]
    assert alice.uses[0][1:] == ("1", 10.0, None, 1e6)
    assert bob.uses[0][1:] == ("1", 5.0, 6.0, 1e6)
    few = with_clients(spark, everything(spark, question), most=8).clients or ()
    assert [(len(each.uses), each.width) for each in few] == [(4, 180.0), (4, 180.0)]
