"""A plan that is made once and laid over each batch of a stream."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotahost.pipeline import plan_cache
from quotahost.pipeline.plan_cache import PlanCache


@pytest.fixture
def numbers(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of three batches, of 1 and 2, of 3, and of 4."""
    for index, batch in enumerate([[1, 2], [3], [4]]):
        text = "\n".join(json.dumps({"word": f"w{each}", "number": each}) for each in batch)
        file = tmp_path / f"{index}.json"
        file.write_text(text)
        os.utime(file, (index, index))  # the oldest first
    stream = spark.readStream.schema("word STRING, number INT").option("maxFilesPerTrigger", "1")
    return stream.json(str(tmp_path)).selectExpr("word", "number * 10 AS tens")


class Counted:
    def __init__(self) -> None:
        self.plans = PlanCache()
        self.built = 0
        self.found: list[list[tuple[object, ...]]] = []

    def query(self, batch: DataFrame) -> DataFrame:
        self.built += 1
        text = "SELECT count(*), sum(tens), max(word) FROM {batch} WHERE tens > 10"
        return batch.sparkSession.sql(text, batch=batch.coalesce(1))

    def run(self, stream: DataFrame, *keys: str) -> None:
        def done(batch: DataFrame, number: int) -> None:
            answer = self.plans.over(batch, self.query, *keys[number : number + 1])
            self.found.append([tuple(row) for row in answer.collect()])

        stream.writeStream.foreachBatch(done).trigger(availableNow=True).start().awaitTermination()


ROWS = [[(1, 20, "w2")], [(1, 30, "w3")], [(1, 40, "w4")]]


@pytest.mark.parametrize(("keys", "built"), [("", 1), ("abb", 2)])
def test_it_is_built_once_for_all_batches_and_anew_when_what_it_depends_on_changes(
    numbers: DataFrame, keys: str, built: int
) -> None:
    counted = Counted()
    counted.run(numbers, *keys)
    assert (counted.found, counted.built) == (ROWS, built)
    counted.run(numbers.selectExpr("word", "tens + 0 AS tens"), *keys)
    assert (counted.found, counted.built) == (ROWS * 2, 2 * built), "another stream has a plan of its own"


@pytest.mark.parametrize(("part", "instead"), [("_ROWS", "SomethingElse"), ("ClassicDataFrame", None)])
def test_with_other_plans_or_classes_in_spark_each_batch_is_built_anew(
    numbers: DataFrame, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, part: str, instead: Any
) -> None:
    monkeypatch.setattr(plan_cache, part, instead)
    counted = Counted()
    with caplog.at_level("INFO"):
        counted.run(numbers)
    assert (counted.found, counted.built) == (ROWS, 3)
    assert len([each for each in caplog.messages if "can't be used again" in each]) == 1
