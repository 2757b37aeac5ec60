"""Spark's roll-up equals the same roll-up in plain Python, also for silent, removed and late brokers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from harness import rollup as model
from harness.rollup import Record
from quotahost.model import LimitType
from quotahost.model.volumes import byte_limits
from quotahost.pipeline import cluster as aggregate
from quotahost.pipeline import snapshots as records
from quotahost.pipeline.cluster import MAX_TELLERS, Rules, used_budgets
from quotahost.records import snapshot as snapshots
from quotahost.records.budgets import MAX_BUDGETS
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord, decode, encode
from tests.pipeline.records import NOW, NOW_MS, Log, Planned, ago, limit, record, snapshot, volume

RULES = Rules("home", timedelta(seconds=60), timedelta(seconds=600), ("1", "2", "9"))
WINDOW = timedelta(seconds=20)
RUN, SEQUENCE = 7, 8


def told(broker: str, seconds: float, *volumes: dict[str, Any], **more: Any) -> Record:
    return record(0, broker, snapshot(broker, ago(seconds), volumes, **more), ago(seconds))


def query(given: DataFrame) -> DataFrame:
    good = records.parse(given).where("error IS NULL").fillna("home", "cluster")
    return aggregate.rollup(aggregate.state(good, WINDOW).withColumn("now", lit(NOW)), RULES)


ROLLED = Planned(query)


def in_spark(spark: SparkSession, given: Sequence[Record]) -> dict[str, ClusterRecord]:
    clusters = aggregate.by_cluster(ROLLED(spark, given))
    return {name: aggregate.record(name, kinds, RULES, RUN, SEQUENCE) for name, kinds in clusters.items()}


def in_python(given: Sequence[Record]) -> dict[str, ClusterRecord]:
    found = model.rollup(model.state(given, WINDOW), RULES, RUN, SEQUENCE, NOW_MS)
    return {each.cluster: each for each in found}


LIMITS = st.one_of(
    st.just({}),
    st.builds(limit, st.sampled_from(["ConsumedBytes", "MinFreeBytes"]), st.integers(0, 120)),
    st.builds(limit, st.just("MinFreePercentage"), st.integers(0, 100)),
)
SIZES = st.one_of(st.integers(0, 120), st.sampled_from([2**63 - 1, 10**18 + 1]))
TOPICS = st.none() | st.lists(st.sampled_from(["x", "y", "z.1"]), max_size=3)
VOLUMES = st.lists(
    st.builds(volume, st.sampled_from("abcd"), SIZES, SIZES, topics=TOPICS),
    max_size=3,
    unique_by=lambda v: v["volumeName"],
)
LIMITED = st.lists(
    st.builds(volume, st.sampled_from("ab"), SIZES, SIZES, softLimit=LIMITS, hardLimit=LIMITS, topics=TOPICS),
    max_size=1,
)
WRONG_BUDGETS = (
    None, "a", 1, {"a": 1}, [1], [["a"]], [["a", -1]], [["a", "1"]], [["a\n", 1]], [["a", 1], ["a", 2]], [["a", 2**63]],
    [[1, 1]], [["a b", 1]],
)  # fmt: skip
BUDGETS = st.lists(
    st.tuples(st.sampled_from(["orders.*", "logs", "x" * 64]), st.sampled_from([0, 7, 5.0, 2**53])),
    max_size=3, unique_by=lambda budget: budget[0],
) | st.sampled_from(WRONG_BUDGETS)  # fmt: skip
MORE = st.fixed_dictionaries(
    {"softLimit": LIMITS, "hardLimit": LIMITS},
    optional={
        "clusterId": st.sampled_from(["home", "away", ""]),
        "offlineLogDirs": st.lists(st.sampled_from(["/x", "/y"]), max_size=2),
        "unknown": st.just({"a": [1]}),
        "ageMs": st.one_of(st.integers(0, 90_000), st.just(2**63 - 1)),
        "schemaVersion": st.just(1),
        "budgets": BUDGETS,
    },
)


@st.composite
def topics(draw: st.DrawFn) -> list[Record]:
    """Snapshots, tombstones and nonsense, in any order of their times."""
    made: list[Record] = []
    for offset in range(draw(st.integers(0, 14))):
        broker = draw(st.sampled_from("1234"))
        written = ago(draw(st.integers(0, 700)))
        what = draw(st.sampled_from(["snapshot"] * 8 + ["tombstone", "nonsense"]))
        if what == "snapshot":
            taken = written - timedelta(milliseconds=draw(st.integers(-2000, 30_000)))
            volumes: list[dict[str, Any]] = draw(st.one_of(VOLUMES, LIMITED))
            value = snapshot(broker, taken, volumes, **draw(MORE))
            made.append(record(offset, broker, value, written))
        else:
            made.append(record(offset, broker, None if what == "tombstone" else b"{", written))
    if draw(st.booleans()) and made:
        made.append(replace(made[0], offset=99))  # a duplicate
    return list(draw(st.permutations(made)))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=topics())
def test_it_equals_the_plain_aggregate_for_any_records_in_any_order(spark: SparkSession, made: list[Record]) -> None:
    found, expected = in_spark(spark, made), in_python(made)
    assert found == expected, "Spark and Python agree to the last bit"
    for each in found.values():
        read = decode(each.cluster.encode(), encode(each))
        assert (read.run, read.sequence) == (RUN, SEQUENCE)


def test_what_a_broker_had_last_is_told_after_it_is_listed_no_more(spark: SparkSession) -> None:
    """Only readers know whether the broker is fenced; if it is, a disk that was full when it died stays full."""
    forgotten = [told(f"0{n}", 601, volume("a", 100, 99)) for n in range(100)]
    others = [told("2", 600, volume("a", 100, 50)), told("1", 10, volume("a", 100, 40))]
    of_all = in_spark(spark, [*forgotten, *others, told("7", 601, volume("a", 100, 99), clusterId="away")])
    assert of_all.keys() == {"home"}, "no broker is left in the other cluster to read a record"
    found = of_all["home"]
    assert (found.stale, found.stale_brokers, found.missing_brokers) == (1, ("2",), ("9",))
    assert (found.reporting, found.volume_count, found.kinds) == (1, 1, 1)
    assert [trend.volume.consumed for trend in found.silent] == [50, *[99] * 16], "the listed brokers come first"


def test_invented_and_decommissioned_brokers_hide_none_that_should_report(spark: SparkSession) -> None:
    """The own cluster's brokers in service are 1, 2 and 9."""
    gone = [told(f"0{n}", 100, volume("a", 100, 99)) for n in range(100)]
    invented = [told(f"x{n}", 1, offlineLogDirs=["/x"]) for n in range(70)]
    own = [told("9", 100, volume("a", 100, 50)), told("1", 1, volume("a", 100, 40), offlineLogDirs=["/e"])]
    found = in_spark(spark, [*gone, *invented, *own])["home"]
    assert (found.reporting, found.stale, found.stale_brokers[0]) == (1, 101, "9")
    assert (found.missing_brokers, found.offline, found.offline_dirs[0].broker) == (("2",), 1, "1")


def rates(spark: SparkSession, given: Sequence[Record]) -> dict[str, float | None]:
    """The fill rate of each broker's one volume; the window is 20 s."""
    worst = in_spark(spark, given)["home"].worst[LimitType.CONSUMED_BYTES]
    return {each.volume.broker: each.fill_rate for each in worst}


def test_a_tombstone_removes_a_broker_and_a_later_snapshot_begins_a_new_history(spark: SparkSession) -> None:
    given = [told(broker, 30, volume("a", 100, 10)) for broker in "123"]
    given += [record(1, broker, None, ago(20)) for broker in "12"]
    given += [told(broker, 10, volume("a", 100, 50)) for broker in "23"]
    assert rates(spark, given) == {"2": None, "3": pytest.approx(2.0)}


def test_a_fill_rate_looks_back_one_to_two_windows(spark: SparkSession) -> None:
    assert NOW.second % 20 == 5  # so the present period began 5 s ago
    # The bytes that a volume held so many seconds ago, and its fill rate.
    cases: list[tuple[list[tuple[float, int]], float | None]] = [
        ([(4, 500)], None),
        ([(4, 500), (1, 800)], 100),
        ([(24, 100), (4, 500), (1, 790)], 30),
        ([(44, 900), (24, 100), (4, 500), (1, 790)], 30),
        ([(4010, 0), (1, 4009)], 1),  # after a long silence the old reading counts
        ([(4000, 0), (1, 4009)], None),  # it doesn't count if its period has the same parity
    ]
    given = [told(str(n), at, volume("a", 10_000, used)) for n, (held, _) in enumerate(cases) for at, used in held]
    expected = {str(n): rate and pytest.approx(rate) for n, (_, rate) in enumerate(cases)}
    assert rates(spark, given) == expected


def test_after_a_restart_with_a_longer_window_a_fill_rate_is_by_that_one(spark: SparkSession, tmp_path: Path) -> None:
    log, found = Log(tmp_path / "in"), list[float | None]()

    def reads(window: int, *held: tuple[int, int]) -> None:
        log.write(*(told("1", at, volume("a", 10**6, used)) for at, used in held))
        rows = aggregate.state(records.parse(log.stream(spark)).where("error IS NULL"), timedelta(seconds=window))
        writer = rows.writeStream.outputMode("complete").option("checkpointLocation", str(tmp_path / "checkpoint"))
        batch = writer.foreachBatch(lambda frame, _: found.extend(row["fillRate"] for row in frame.collect()))
        batch.trigger(availableNow=True).start().awaitTermination()

    reads(20, (400, 0), (380, 20), (360, 40))
    reads(40, *((at, 40 + (360 - at) * 100) for at in range(340, 0, -20)))
    assert found == [1, 100]


# ---- topics ----------------------------------------------------------------------------------------

ABOVE: Final = {"softLimit": limit("ConsumedBytes", 10), "hardLimit": limit("ConsumedBytes", 90)}
X: Final = volume("/a", 100, 11, topics=["x"], **ABOVE)
BELOW: Final = volume("/a", 100, 10, topics=["w"], **ABOVE)
SILENT: Final = volume("/a", 100, 10, **ABOVE)
MANY: Final = [volume("/a", 100, 11, topics=[f"{n}-{m}" for m in range(500)], **ABOVE) for n in range(3)]
#: Volumes of one cluster, and the affected topics in its record; None is all topics.
UNIONS: Final[dict[str, tuple[list[dict[str, Any]], frozenset[str] | None]]] = {
    "above the soft or at the hard limit": ([X, volume("/b", 100, 90, topics=["y"], **ABOVE), BELOW], frozenset("xy")),
    "one above does not tell": ([X, SILENT | {"consumed": 11}], None),
    "one that does not tell is below": ([X, SILENT], frozenset("x")),
    "one that does not tell has no limit": ([X, volume("/b", 100, 100)], frozenset("x")),
    "nobody is above": ([SILENT], frozenset()),
    "as many as are listed": (MANY[:2], frozenset(f"{n}-{m}" for n in range(2) for m in range(500))),
    "more than are listed": (MANY, None),
}


def affected(spark: SparkSession, cases: dict[str, list[Any]], at: float = 1) -> dict[str, frozenset[str] | None]:
    """The affected topics of each case; a case is a cluster of brokers with one volume each."""
    volumes = [(name, n, each) for name, case in cases.items() for n, each in enumerate(case)]
    given = [told(f"{name} {n}", at, each, clusterId=name) for name, n, each in volumes]
    return {name: record.affected for name, record in in_spark(spark, given).items()}


@pytest.mark.parametrize("at", [1, 100])
def test_the_union_is_of_the_volumes_above_their_soft_limits_fresh_or_silent(spark: SparkSession, at: float) -> None:
    cases = {name: volumes for name, (volumes, _) in UNIONS.items()}
    assert affected(spark, cases, at) == {name: expected for name, (_, expected) in UNIONS.items()}


def test_more_volumes_of_one_kind_that_tell_than_are_read_are_all(spark: SparkSession) -> None:
    alike = [X | {"topics": [f"t{n}"]} for n in range(MAX_TELLERS + 1)]
    kinds = [each | {"capacity": 100 + n} for n, each in enumerate(alike)]
    read = [f"t{n}" for n in range(MAX_TELLERS + 1)]
    expected = {"few": frozenset(read[:-1]), "many": None, "many kinds": frozenset(read)}
    assert affected(spark, {"few": alike[:-1], "many": alike, "many kinds": kinds}) == expected


# ---- the volumes that a shortened record lists -----------------------------------------------------

LONG = 2**63 - 1


def any_volume(random: Random) -> dict[str, Any]:
    sizes = [0, 1, 100, 2**53 - 1, 2**53 + 1, LONG, random.randint(0, LONG), random.randint(0, 10**6)]
    kinds = ["ConsumedBytes", "MinFreeBytes"]

    def some() -> dict[str, Any]:
        if random.random() < 0.3:
            return {}
        if random.random() < 0.4:
            return limit("MinFreePercentage", random.randint(0, 100))
        return limit(random.choice(kinds), random.choice(sizes))

    capacity = random.choice(sizes)
    consumed = random.choice([*sizes, capacity // 2, max(0, capacity - random.randint(0, 100))])
    return {"capacity": capacity, "consumed": consumed, "softLimit": some(), "hardLimit": some()}


def test_spark_lists_the_same_kinds_and_none_that_is_left_out_is_worse(spark: SparkSession) -> None:
    random = Random(0)
    own = {"softLimit": limit("MinFreePercentage", 20), "hardLimit": limit("MinFreePercentage", 10)}
    given = [
        told(str(number), 1, *(volume(f"/{n}", **any_volume(random)) for n in range(40)), **(own if number % 2 else {}))
        for number in range(10)
    ]
    found = in_spark(spark, given)["home"]
    assert found == in_python(given)["home"]
    assert found.kinds > len(found.fullest) == MAX_LISTED
    every = [each for one in given for each in snapshots.decode(one.key, one.value or b"").volumes]
    for volumes in (every, found.volumes):
        judged = [(each, byte_limits(each, each.soft, each.hard)) for each in volumes]
        assert found.smallest_factor == min(ramp.ramp(each.consumed) for each, ramp in judged if ramp)


def test_of_silent_brokers_the_volumes_with_the_smallest_factors_are_listed_too(spark: SparkSession) -> None:
    free = {"softLimit": limit("MinFreeBytes", 1), "hardLimit": limit("MinFreeBytes", 0)}
    most = [volume(f"/{n}", 1000 + n, 990, **free) for n in range(100)]
    at_hard = volume("/at-hard", 10**6, 10, softLimit=limit("ConsumedBytes", 5), hardLimit=limit("ConsumedBytes", 10))
    given = [told("1", 61, *most, at_hard)]
    found = in_spark(spark, given)["home"]
    assert found == in_python(given)["home"]
    assert "/at-hard" in [each.volume.name for each in found.silent]


def test_of_budgets_brokers_in_service_and_the_others_are_added_up_apart(spark: SparkSession) -> None:
    of = {"1": [["orders", 5], ["logs", 1]], "2": [["orders", 7]], "3": [["orders", 11]], "4": [["orders", LONG]]}
    made = [told(name, 1, budgets=budgets) for name, budgets in of.items()]
    # Broker 9 is in service and silent, so the bytes that it leads still count. Broker 5 is long gone.
    made += [told("9", 99, budgets=[["orders", 13]]), told("5", 601, budgets=[["orders", 17]])]
    assert in_spark(spark, made)["home"].budgets == (("logs", 1, 0), ("orders", 25, LONG)), "no sum overflows"
    unlisted = [("1", True, '[["orders", 5]]'), ("2", False, '[["orders", 7]]')]  # brokers that report count as serving
    assert used_budgets(unlisted, ()) == (("orders", 5, 7),)


def test_a_wrong_list_of_budgets_counts_as_none_and_the_rest_of_the_snapshot_is_taken(spark: SparkSession) -> None:
    made = [told(str(n), 1, volume("a", 9, 1), budgets=odd) for n, odd in enumerate(WRONG_BUDGETS)]
    for found in (in_spark(spark, made)["home"], in_python(made)["home"]):
        assert (found.consumed, found.budgets) == (len(WRONG_BUDGETS), ())


def test_a_strangers_thousands_of_budgets_leave_those_that_brokers_in_service_have() -> None:
    strangers = [(f"x{n}", True, json.dumps([[f"a{n}-{m}", 9] for m in range(1000)])) for n in (1, 2)]
    found = used_budgets([("1", True, '[["orders", 1]]'), *strangers], ("1",))
    assert len(found) == MAX_BUDGETS
    assert ("orders", 1, 0) in found
