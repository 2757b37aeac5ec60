"""Which volumes a cut record lists: Spark's choice equals that of the plain model, bit by bit, whatever the sizes."""

from __future__ import annotations

from random import Random
from typing import Any

from pyspark.sql import SparkSession

from quotahost.model.volumes import byte_limits
from quotahost.records.cluster_volumes import MAX_LISTED
from quotahost.records.snapshot import decode
from tests.pipeline.support.records import ago, limit, record, snapshot, volume
from tests.pipeline.volumes.test_aggregate import in_python, in_spark
from tests.reference.volumes import Record

LONG = 2**63 - 1


def near(random: Random) -> dict[str, Any]:
    """A volume whose factor differs from that of others by less than a double shows."""
    capacity = LONG - random.randint(0, 1000)
    soft, hard = limit("ConsumedBytes", random.randint(0, 5)), limit("MinFreeBytes", random.randint(0, 5))
    consumed = capacity // 2 + random.randint(-1000, 1000)
    return {"capacity": capacity, "consumed": consumed, "softLimit": soft, "hardLimit": hard}


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


def topic(random: Random, brokers: int) -> list[Record]:
    makes = [near, any_volume]
    found = []
    for number in range(brokers):
        made = [volume(f"/{n}", **random.choice(makes)(random)) for n in range(20)]
        own = {"softLimit": limit("MinFreePercentage", 20), "hardLimit": limit("MinFreePercentage", 10)}
        value = snapshot(str(number), ago(1), made, **(own if number % 2 else {}))
        found.append(record(number, str(number), value, ago(1)))
    return found


def test_spark_lists_the_same_kinds_and_none_that_is_left_out_is_worse(spark: SparkSession) -> None:
    for seed in range(2):
        given = topic(Random(seed), 10)
        found = in_spark(spark, given)["home"]
        assert found == in_python(given)["home"]
        assert found.kinds > len(found.fullest) == MAX_LISTED
        volumes = [each for one in given for each in decode(one.key, one.value or b"").volumes]
        judged = [(each, byte_limits(each, each.soft, each.hard)) for each in volumes]
        assert found.smallest_factor == min(ramp.ramp(each.consumed) for each, ramp in judged if ramp)


def test_of_silent_brokers_the_volumes_with_the_smallest_factors_are_listed_too(spark: SparkSession) -> None:
    most = [volume(f"/{n}", 1000 + n, 990, **_limits(1, 0)) for n in range(100)]
    at_hard = volume("/at-hard", 10**6, 10, softLimit=limit("ConsumedBytes", 5), hardLimit=limit("ConsumedBytes", 10))
    given = [record(0, "1", snapshot("1", ago(61), [*most, at_hard]), ago(61))]
    found = in_spark(spark, given)["home"]
    assert found == in_python(given)["home"]
    assert "/at-hard" in [each.volume.name for each in found.silent]


def _limits(soft: int, hard: int) -> dict[str, Any]:
    return {"softLimit": limit("MinFreeBytes", soft), "hardLimit": limit("MinFreeBytes", hard)}
