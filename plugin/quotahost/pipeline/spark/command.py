"""Spark for the command ``quotahost report``: its start, its errors in words, and its progress."""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from quotahost.errors import QuotahostError
from quotahost.pipeline.spark.session import session

# The report scans a long history, while the pipeline's defaults suit short batches.
_LARGE: Final = {"spark.sql.shuffle.partitions": "8", "spark.sql.codegen.wholeStage": "true"}


class NoSpark(QuotahostError):
    """Spark can't start on this machine; the message names what is missing."""


def start(name: str) -> SparkSession:
    """Start Spark in this process; ``name`` is the application's.

    Raises:
        NoSpark: there is no Java that Spark runs on.
    """
    try:
        return session(name, conf=_LARGE, kafka=False)
    except (PySparkRuntimeError, FileNotFoundError):
        raise NoSpark("Spark didn't start: it needs Java 17 or 21, by JAVA_HOME or on the PATH") from None


def tasks(spark: SparkSession) -> tuple[int, int]:
    """How many tasks of the stages that run now are done, and how many there are. Any thread may call."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    there = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in there), sum(stage.numTasks for stage in there)
