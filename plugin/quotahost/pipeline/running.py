"""How far Spark is with what it does now."""

from __future__ import annotations

from pyspark.sql import SparkSession


def tasks(spark: SparkSession) -> tuple[int, int]:
    """Of the stages that run now: how many tasks are done, and how many there are. May be asked by any thread."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    there = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in there), sum(stage.numTasks for stage in there)
