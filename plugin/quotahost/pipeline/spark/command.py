"""A Spark for a command: started with an error that an operator understands, and how far it is."""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from quotahost.errors import QuotahostError
from quotahost.pipeline.spark.session import session

# Long scans, where the pipeline's batches are short.
_LARGE: Final = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


class NoSpark(QuotahostError):
    """Spark can't be started here; the message says what it needs."""


def start(name: str) -> SparkSession:
    """A Spark in this process.

    Raises:
        NoSpark: there is no Java that it runs on.
    """
    try:
        return session(name, conf=_LARGE, kafka=False)
    except (PySparkRuntimeError, FileNotFoundError):
        raise NoSpark("Spark didn't start: it needs Java 17 or 21, by JAVA_HOME or on the PATH") from None


def tasks(spark: SparkSession) -> tuple[int, int]:
    """Of the stages that run now: how many tasks are done, and how many there are. May be asked by any thread."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    there = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in there), sum(stage.numTasks for stage in there)
