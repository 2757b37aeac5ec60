"""The Spark session of the pipeline and of ``quotahost report``: its configuration, and the jars that it needs.

The configuration lies in ``conf/`` beside this file. PySpark doesn't contain Spark's Kafka connector; ``make build``
has Maven put its jars into ``jars/`` (``tools/spark-connector.xml`` names them), and the wheel carries them: nothing is
downloaded while the pipeline runs. ``quotahost pipeline --print-submit`` names both to spark-submit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import javaproperties
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from quotahost.errors import QuotahostError

# Files of the package quotahost.pipeline, for path().
DEFAULTS: Final = "spark/conf/spark-defaults.conf"
LOG4J: Final = "spark/conf/log4j2.properties"
POOLS: Final = "spark/conf/fairscheduler.xml"
# The report scans a long history, while the pipeline's defaults suit short batches.
_LARGE: Final = {"spark.sql.shuffle.partitions": "8", "spark.sql.codegen.wholeStage": "true"}


class ConnectorError(QuotahostError):
    """The connector's jars are missing; the message names the remedy."""

    exit_code = 2


class NoSpark(QuotahostError):
    """Spark can't start on this machine; the message names what is missing."""


def path(name: str) -> Path:
    """The path of a file of the package ``quotahost.pipeline``."""
    return Path(str(files("quotahost.pipeline").joinpath(name)))


def session(
    name: str, master: str = "local[*]", conf: Mapping[str, str] | None = None, kafka: bool = True
) -> SparkSession:
    """A session with the pipeline's configuration; a session that runs in this process already is returned as it is.

    Under spark-submit, the master, memory and jars that it was given stay.

    Args:
        name: the application's, as Spark shows it.
        master: Spark's master; where the session runs.
        conf: properties of Spark that replace the defaults.
        kafka: whether the session needs Spark's Kafka connector.

    Raises:
        ConnectorError: the connector's jars are missing.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run whatever python3 is first in PATH
    builder = SparkSession.builder.appName(name)
    for key, value in (_own(master, kafka) | dict(conf or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def checkpoint_files(checkpoint: str) -> dict[str, str]:
    """Configuration that writes a checkpoint on this machine faster; each batch writes three files.

    By FileContext, Spark's own choice, Hadoop starts several programs for a file: 50 ms. By FileSystem a file takes
    12 ms, and 7 ms without a second file of checksums. The state's files are LZ4, which has checksums of its own.
    """
    scheme = urlsplit(checkpoint).scheme
    # Under spark-submit a path without a scheme lies in Hadoop's default file system, often not on this machine.
    if scheme != "file" and (scheme or submitted()):
        return {}
    return {
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }


def submitted() -> bool:
    """Whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _own(master: str, kafka: bool) -> dict[str, str]:
    if submitted():
        # The JVM runs already, with the properties that spark-submit was given.
        return {key: value for key, value in defaults().items() if key.startswith("spark.sql.")}
    return local(master, kafka)


def local(master: str, kafka: bool = True) -> dict[str, str]:
    """The configuration of a session whose driver runs in this process."""
    of_kafka = {"spark.jars": ",".join(map(str, jars()))} if kafka else {}
    own = defaults() | quiet()
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    own |= of_kafka | {"spark.master": master, "spark.scheduler.allocation.file": path(POOLS).as_uri()}
    return own | (loopback if master.startswith("local") else {})


def quiet() -> dict[str, str]:
    """The options of the driver's JVM, by which Spark's own log begins at WARN; else it starts with some 200 lines."""
    options = "spark.driver.extraJavaOptions"
    return {options: f"{defaults()[options]} -Dlog4j2.configurationFile={path(LOG4J)}"}


def defaults() -> dict[str, str]:
    """The properties in ``spark-defaults.conf``."""
    with Path(path(DEFAULTS)).open() as file:
        return dict(javaproperties.load(file))


def jars() -> list[Path]:
    """The connector's jars.

    Raises:
        ConnectorError: this package was built without them.
    """
    directory = path("spark/jars")
    found = sorted(directory.glob("*.jar"))
    if not found:
        raise ConnectorError(
            f"{directory} has no jar of Spark's Kafka connector: install quotahost from its wheel, or run make build"
        )
    return found


# ---- what PySpark has no public name for -----------------------------------------------------------


def jvm(spark: SparkSession) -> Any:
    """The driver's JVM, as Py4J shows it (``SparkSession._jvm``), for Kafka's own clients and Hadoop's file systems.

    Without it the pipeline ends at its start, with an AttributeError. :mod:`quotahost.pipeline.spark.plan_cache` says
    what else of Spark's own the pipeline uses, and does without it.
    """
    return spark._jvm


def hadoop(spark: SparkSession) -> Any:
    """Hadoop's configuration (``SparkSession._jsc``), by which paths find their file systems; likewise."""
    java: Any = spark
    return java._jsc.hadoopConfiguration()


# ---- for quotahost report --------------------------------------------------------------------------


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
