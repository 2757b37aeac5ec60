"""Spark's roll-up against the same in plain Python, and what it says of silent, removed and late brokers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from quotahost.model.volumes import byte_limits
from quotahost.pipeline import cluster as aggregate
from quotahost.pipeline import snapshots as records
from quotahost.pipeline.cluster import MAX_TELLERS, Rules, used_budgets
from quotahost.pipeline.cluster import record as from_row
from quotahost.records import snapshot as snapshots
from quotahost.records.budgets import MAX_BUDGETS
from quotahost.records.cluster_volumes import MAX_LISTED, ClusterRecord, decode, encode
from tests.pipeline.support.records import NOW, NOW_MS, Planned, ago, limit, record, snapshot, volume
from tests.reference import volumes as model
from tests.reference.volumes import Record

RULES = Rules("home", timedelta(seconds=60), timedelta(seconds=600), ("1", "2", "9"))
WINDOW = timedelta(seconds=20)
RUN, SEQUENCE = 7, 8


def query(given: DataFrame, tellers: int) -> DataFrame:
    good = records.parse(given).where("error IS NULL")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate, "_ROLLUP", aggregate._rollup_sql(tellers))
        return aggregate.rollup(aggregate.state(good, WINDOW).withColumn("now", lit(NOW)), RULES)


ROLLED = Planned(query)


def in_spark(spark: SparkSession, given: Sequence[Record], tellers: int = MAX_TELLERS) -> dict[str, ClusterRecord]:
    rows = ROLLED(spark, given, tellers)
    return {row["cluster"]: from_row(row, RULES, RUN, SEQUENCE) for row in rows}


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
    assert found == expected, "to the last bit"
    for each in found.values():
        assert decode(each.cluster.encode(), encode(each)).order == (RUN, SEQUENCE)


def test_a_silent_broker_is_stale_and_its_volumes_count_no_more(spark: SparkSession) -> None:
    given = [
        record(0, "1", snapshot("1", ago(10), [volume("a", 100, 40)]), ago(10)),
        record(1, "2", snapshot("2", ago(61), [volume("a", 100, 99)]), ago(61)),
    ]
    found = in_spark(spark, given)["home"]
    assert (found.reporting, found.stale, found.stale_brokers) == (1, 1, ("2",))
    assert (found.missing, found.missing_brokers) == (1, ("9",))
    assert (found.consumed, found.capacity) == (40, 100)
    assert [filling.volume.consumed for filling in found.silent] == [99], "what it had last is told apart"


def test_what_a_broker_had_last_is_told_after_it_is_listed_no_more(spark: SparkSession) -> None:
    """Only readers know whether it is fenced, and then a disk that was full when it died stays full."""
    forgotten = [record(n, f"0{n}", snapshot(f"0{n}", ago(601), [volume("a", 100, 99)]), ago(601)) for n in range(100)]
    silent = record(100, "2", snapshot("2", ago(600), [volume("a", 100, 50)]), ago(600))
    fresh = record(101, "1", snapshot("1", ago(10), [volume("a", 100, 40)]), ago(10))
    found = in_spark(spark, [*forgotten, silent, fresh])["home"]
    assert (found.stale, found.stale_brokers, found.missing_brokers) == (1, ("2",), ("9",))
    assert (found.reporting, found.volume_count, found.kinds) == (1, 1, 1)
    assert [filling.volume.consumed for filling in found.silent] == [50, *[99] * 16], "those that are listed come first"
    assert in_spark(spark, [*forgotten]) == {}, "nobody is left who would read it"


def test_invented_and_decommissioned_brokers_hide_none_that_should_report(spark: SparkSession) -> None:
    """The own cluster's brokers in service are 1, 2 and 9."""
    gone = [record(n, f"0{n}", snapshot(f"0{n}", ago(100), [volume("a", 100, 99)]), ago(100)) for n in range(100)]
    invented = [
        record(100 + n, f"x{n}", snapshot(f"x{n}", ago(1), [], offlineLogDirs=["/x"]), ago(1)) for n in range(70)
    ]
    silent = record(200, "9", snapshot("9", ago(100), [volume("a", 100, 50)]), ago(100))
    fresh = record(201, "1", snapshot("1", ago(1), [volume("a", 100, 40)], offlineLogDirs=["/e"]), ago(1))
    found = in_spark(spark, [*gone, *invented, silent, fresh])["home"]
    assert (found.reporting, found.stale, found.stale_brokers[0]) == (1, 101, "9")
    assert (found.missing_brokers, found.offline, found.offline_dirs[0].broker) == (("2",), 1, "1")


def test_a_tombstone_removes_a_broker_and_a_later_snapshot_begins_a_new_history(spark: SparkSession) -> None:
    first = record(0, "1", snapshot("1", ago(30), [volume("a", 100, 10)]), ago(30))
    gone = record(1, "1", None, ago(20))
    again = record(2, "1", snapshot("1", ago(10), [volume("a", 100, 50)]), ago(10))
    assert in_spark(spark, [first, gone]) == {}
    assert in_spark(spark, [first, gone, again])["home"].fullest[0].fill_rate is None
    assert in_spark(spark, [first, again])["home"].fullest[0].fill_rate == pytest.approx(2.0)


def fill(spark: SparkSession, *readings: tuple[float, int]) -> float | None:
    """The fill rate of a volume that held so many bytes so many seconds ago; the window is 20 s."""
    given = [
        record(n, "1", snapshot("1", ago(seconds), [volume("a", 10_000, used)]), ago(seconds))
        for n, (seconds, used) in enumerate(readings)
    ]
    return in_spark(spark, given)["home"].fullest[0].fill_rate


def test_a_fill_rate_looks_back_one_to_two_windows(spark: SparkSession) -> None:
    assert NOW.second % 20 == 5  # so the period that runs began 5 s ago
    assert fill(spark, (4, 500)) is None
    assert fill(spark, (4, 500), (1, 800)) == pytest.approx(100)
    assert fill(spark, (24, 100), (4, 500), (1, 790)) == pytest.approx(30)
    assert fill(spark, (44, 900), (24, 100), (4, 500), (1, 790)) == pytest.approx(30)
    assert fill(spark, (4010, 0), (1, 4009)) == pytest.approx(1)  # silent for long: what there is
    assert fill(spark, (4000, 0), (1, 4009)) is None  # or not, when that was in a period of the same parity


@pytest.mark.proves("faults.clock")
def test_a_clock_that_is_ahead_does_not_win_for_ever(spark: SparkSession) -> None:
    ahead = record(0, "1", snapshot("1", NOW + timedelta(minutes=10), [volume("a", 100, 10)]), ago(20))
    right = record(1, "1", snapshot("1", ago(5), [volume("a", 100, 60)]), ago(5))
    assert in_spark(spark, [ahead, right])["home"].consumed == 60


def test_the_smallest_factor_is_that_of_the_published_limits(spark: SparkSession) -> None:
    soft, hard = limit("ConsumedBytes", 10), limit("MinFreePercentage", 85)
    full = snapshot("1", ago(1), [volume("a", 100, 12)], softLimit=soft, hardLimit=hard)
    found = in_spark(spark, [record(0, "1", full, ago(1))])["home"]
    assert found.smallest_factor == pytest.approx(0.6)
    free = snapshot("1", ago(1), [volume("a", 100, 12)])
    assert in_spark(spark, [record(0, "1", free, ago(1))])["home"].smallest_factor is None


# ---- topics ----------------------------------------------------------------------------------------

ABOVE: Final = {"softLimit": limit("ConsumedBytes", 10), "hardLimit": limit("ConsumedBytes", 90)}


def affected(
    spark: SparkSession, *volumes: dict[str, Any], at: float = 1, tellers: int = MAX_TELLERS
) -> frozenset[str] | None:
    """The union for brokers of one volume each, in Spark, which says the same as the plain model."""
    given = [record(n, str(n), snapshot(str(n), ago(at), [each]), ago(at)) for n, each in enumerate(volumes)]
    found = in_spark(spark, given, tellers)["home"]
    assert len(volumes) > tellers or found == in_python(given)["home"]
    return found.affected


@pytest.mark.parametrize("at", [1, 100])
def test_the_union_is_of_the_volumes_above_their_soft_limits_fresh_or_silent(spark: SparkSession, at: float) -> None:
    one, other = volume("/a", 100, 11, topics=["x", "y"], **ABOVE), volume("/b", 100, 90, topics=["y", "z"], **ABOVE)
    below = volume("/a", 100, 10, topics=["w"], **ABOVE)
    assert affected(spark, one, other, below, at=at) == frozenset("xyz")


def test_a_volume_above_its_soft_limit_that_does_not_tell_makes_it_all_topics(spark: SparkSession) -> None:
    told, below = volume("/a", 100, 11, topics=["x"], **ABOVE), volume("/a", 100, 10, **ABOVE)
    assert affected(spark, told, volume("/a", 100, 11, **ABOVE)) is None
    assert affected(spark, told, below) == frozenset("x"), "it is not above"
    assert affected(spark, told, volume("/b", 100, 100)) == frozenset("x"), "it has no limit"
    assert affected(spark, below) == frozenset()


def test_a_union_of_more_topics_than_are_listed_is_all(spark: SparkSession) -> None:
    many = [volume("/a", 100, 11, topics=[f"{n}-{m}" for m in range(500)], **ABOVE) for n in range(3)]
    assert len(affected(spark, *many[:2]) or ()) == 1000
    assert affected(spark, *many) is None


def test_more_volumes_that_tell_than_are_read_are_all(spark: SparkSession) -> None:
    told = [volume("/a", 100, 11, topics=[f"t{n}"], **ABOVE) for n in range(3)]
    kinds = [each | {"capacity": 100 + n} for n, each in enumerate(told)]
    for most in (told, kinds):
        assert affected(spark, *most[:2], tellers=2) == frozenset(("t0", "t1"))
        assert affected(spark, *most, tellers=2) is None


@pytest.mark.parametrize(("consumed", "affected"), [(10, frozenset({"orders"})), (90, None)])
def test_brokers_of_an_older_and_of_a_later_version_make_one_record(
    spark: SparkSession, consumed: int, affected: frozenset[str] | None
) -> None:
    """The pipeline may be updated before the brokers and after them."""
    limits = {"softLimit": limit("ConsumedBytes", 50), "hardLimit": limit("ConsumedBytes", 95)}
    # Before factor.scope=topics a snapshot told no topics, no age and no cluster; that stands for all topics.
    older = snapshot("1", ago(1), [volume("a", 100, consumed)], **limits)
    told = volume("a", 100, 60, topics=["orders"], colour={"red": [1]})
    later = snapshot("2", ago(1), [told], **limits, ageMs=5, clusterId="home", soon=None, nested={"deep": [{}]})
    found = in_spark(spark, [record(0, "1", older), record(1, "2", later)])["home"]
    assert (found.reporting, found.volume_count, found.consumed) == (2, 2, consumed + 60)
    assert found.affected == affected


# ---- which volumes a cut record lists --------------------------------------------------------------

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
    given = []
    for number in range(10):
        made = [volume(f"/{n}", **any_volume(random)) for n in range(40)]
        own = {"softLimit": limit("MinFreePercentage", 20), "hardLimit": limit("MinFreePercentage", 10)}
        value = snapshot(str(number), ago(1), made, **(own if number % 2 else {}))
        given.append(record(number, str(number), value, ago(1)))
    found = in_spark(spark, given)["home"]
    assert found == in_python(given)["home"]
    assert found.kinds > len(found.fullest) == MAX_LISTED
    volumes = [each for one in given for each in snapshots.decode(one.key, one.value or b"").volumes]
    judged = [(each, byte_limits(each, each.soft, each.hard)) for each in volumes]
    assert found.smallest_factor == min(ramp.ramp(each.consumed) for each, ramp in judged if ramp)


def test_of_silent_brokers_the_volumes_with_the_smallest_factors_are_listed_too(spark: SparkSession) -> None:
    free = {"softLimit": limit("MinFreeBytes", 1), "hardLimit": limit("MinFreeBytes", 0)}
    most = [volume(f"/{n}", 1000 + n, 990, **free) for n in range(100)]
    at_hard = volume("/at-hard", 10**6, 10, softLimit=limit("ConsumedBytes", 5), hardLimit=limit("ConsumedBytes", 10))
    given = [record(0, "1", snapshot("1", ago(61), [*most, at_hard]), ago(61))]
    found = in_spark(spark, given)["home"]
    assert found == in_python(given)["home"]
    assert "/at-hard" in [each.volume.name for each in found.silent]


def test_of_budgets_brokers_in_service_and_the_others_are_added_up_apart(spark: SparkSession) -> None:
    told = {"1": [["orders", 5], ["logs", 1]], "2": [["orders", 7]], "3": [["orders", 11]], "4": [["orders", LONG]]}
    made = [
        record(n, name, snapshot(name, ago(n), [], budgets=of), ago(n)) for n, (name, of) in enumerate(told.items())
    ]
    # Broker 9 is in service and silent: what it leads counts on; 5 is long gone.
    made += [record(8, "9", snapshot("9", ago(99), [], budgets=[["orders", 13]]), ago(99))]
    made += [record(9, "5", snapshot("5", ago(601), [], budgets=[["orders", 17]]), ago(601))]
    assert in_spark(spark, made)["home"].budgets == (("logs", 1, 0), ("orders", 25, LONG)), "no sum is out of range"


def test_until_the_cluster_has_answered_brokers_that_report_count_as_in_service() -> None:
    told = [("1", True, '[["orders", 5]]'), ("2", False, '[["orders", 7]]')]
    assert used_budgets(told, ()) == (("orders", 5, 7),)


def test_a_wrong_list_of_budgets_leaves_the_rest_of_the_snapshot(spark: SparkSession) -> None:
    made = [
        record(n, str(n), snapshot(str(n), ago(1), [volume("a", 9, 1)], budgets=odd), ago(1))
        for n, odd in enumerate(WRONG_BUDGETS)
    ]
    found = in_spark(spark, made)["home"]
    assert (found.consumed, found.budgets) == (len(WRONG_BUDGETS), ())


def test_a_strangers_thousands_of_budgets_leave_those_that_brokers_in_service_have() -> None:
    strangers = [(f"x{n}", True, json.dumps([[f"a{n}-{m}", 9] for m in range(1000)])) for n in (1, 2)]
    found = used_budgets([("1", True, '[["orders", 1]]'), *strangers], ("1",))
    assert len(found) == MAX_BUDGETS
    assert ("orders", 1, 0) in found
