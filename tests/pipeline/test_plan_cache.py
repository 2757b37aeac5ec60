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


def run(plans: PlanCache, stream: DataFrame, *keys: str) -> tuple[list[list[tuple[object, ...]]], int]:
    """What is found in each batch, and how many plans were built."""
    found, built = list[list[tuple[object, ...]]](), list[DataFrame]()

    def query(batch: DataFrame) -> DataFrame:
        built.append(batch)
        text = "SELECT count(*), sum(tens), max(word) FROM {batch} WHERE tens > 10"
        return batch.sparkSession.sql(text, batch=batch.coalesce(1))

    def done(batch: DataFrame, number: int) -> None:
        found.append([tuple(row) for row in plans.over(batch, query, *keys[number : number + 1]).collect()])

    stream.writeStream.foreachBatch(done).trigger(availableNow=True).start().awaitTermination()
    return found, len(built)


ROWS = [[(1, 20, "w2")], [(1, 30, "w3")], [(1, 40, "w4")]]


@pytest.mark.parametrize(("keys", "built"), [("", 1), ("abb", 2)])
def test_it_is_built_once_and_anew_when_what_it_depends_on_changes(numbers: DataFrame, keys: str, built: int) -> None:
    plans = PlanCache()
    for stream in (numbers, numbers.selectExpr("word", "tens + 0 AS tens")):  # which has a plan of its own
        assert run(plans, stream, *keys) == (ROWS, built)


@pytest.mark.parametrize(("part", "instead"), [("_ROWS", "SomethingElse"), ("ClassicDataFrame", None)])
def test_with_other_plans_or_classes_in_spark_each_batch_is_built_anew(
    numbers: DataFrame, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, part: str, instead: Any
) -> None:
    monkeypatch.setattr(plan_cache, part, instead)
    with caplog.at_level("INFO"):
        assert run(PlanCache(), numbers) == (ROWS, 3)
    assert len([each for each in caplog.messages if "can't be used again" in each]) == 1
