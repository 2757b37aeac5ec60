"""``session`` makes the Spark session of the pipeline and of ``quotahost report``, with its configuration and jars.

The configuration is in ``spark/conf/``. PySpark doesn't contain Spark's Kafka connector. During ``make build`` Maven
puts the connector's jars into ``spark/jars/`` (``tools/spark-connector.xml`` lists them), and the wheel contains them,
so the pipeline downloads nothing. ``quotahost pipeline --print-submit`` passes both to spark-submit.
"""

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

from quotahost.base.errors import QuotahostError, Unusable

# Files of the package quotahost.pipeline, for path().
DEFAULTS: Final = "spark/conf/spark-defaults.conf"
LOG4J: Final = "spark/conf/log4j2.properties"
POOLS: Final = "spark/conf/fairscheduler.xml"


def path(name: str) -> Path:
    return Path(str(files("quotahost.pipeline").joinpath(name)))


def session(
    name: str, master: str = "local[*]", conf: Mapping[str, str] | None = None, kafka: bool = True
) -> SparkSession:
    """Return a session with the pipeline's configuration, or the session that this process already has.

    Under spark-submit, the session keeps spark-submit's master, memory and jars. ``conf`` replaces the defaults;
    ``kafka`` says whether the session needs Spark's Kafka connector. Raises Unusable if the connector's jars are
    missing, and QuotahostError if there is no Java that Spark runs on.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise workers run the first python3 in PATH
    # Under spark-submit the JVM already runs, with spark-submit's properties.
    later = {key: value for key, value in defaults().items() if key.startswith("spark.sql.")}
    builder = SparkSession.builder.appName(name)
    for key, value in ((later if submitted() else local(master, kafka)) | dict(conf or {})).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, FileNotFoundError):
        raise QuotahostError("Spark didn't start: it needs Java 17 or 21, in JAVA_HOME or on the PATH") from None


def local(master: str, kafka: bool = True) -> dict[str, str]:
    """Return the configuration of a session whose driver runs in this process."""
    alone = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # If the clock is set or the machine stands still, Spark would consider itself lost after two minutes, and
        # would then log an error every ten seconds.
        "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    }
    return (
        defaults()
        | quiet()
        | ({"spark.jars": ",".join(map(str, jars()))} if kafka else {})
        | {"spark.master": master, "spark.scheduler.allocation.file": path(POOLS).as_uri()}
        | (alone if master.startswith("local") else {})
    )


def quiet() -> dict[str, str]:
    """Return the driver's JVM options that limit Spark's own log to WARN; by default it starts with some 200 lines."""
    options = "spark.driver.extraJavaOptions"
    # The file is a URI, because Spark would split a path with a space into two options.
    return {options: f"{defaults()[options]} -Dlog4j2.configurationFile={path(LOG4J).as_uri()}"}


def defaults() -> dict[str, str]:
    return dict(javaproperties.loads(path(DEFAULTS).read_text()))


def jars() -> list[Path]:
    """Return the connector's jars. Raises Unusable if this package was built without them."""
    directory = path("spark/jars")
    there = sorted(directory.glob("*.jar"))
    if not there:
        raise Unusable(
            f"{directory} has no jar of Spark's Kafka connector: install quotahost from its wheel, or run make build"
        )
    return there


def checkpoint_files(checkpoint: str) -> dict[str, str]:
    """Return the configuration that writes a checkpoint on this machine faster; each batch writes three files.

    With FileContext, Spark's default, a file takes 50 ms. With FileSystem a file takes 12 ms, and 7 ms without a second
    file of checksums. The state's files are LZ4, which has checksums of its own.
    """
    if not on_this_machine(checkpoint):
        return {}
    return {
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }


def on_this_machine(directory: str) -> bool:
    """Return whether a path or a URL for Hadoop is on this machine, or mounted there."""
    scheme = urlsplit(directory).scheme
    # Under spark-submit a path without a scheme lies in Hadoop's default file system, often not on this machine.
    return scheme == "file" or not (scheme or submitted())


def submitted() -> bool:
    """Return whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


# ---- what PySpark has no public name for -----------------------------------------------------------


def jvm(spark: SparkSession) -> Any:
    """Return the driver's JVM (``SparkSession._jvm`` of Py4J), for Kafka's own clients and Hadoop's file systems.

    If a PySpark has no such attribute, the pipeline ends at its start with an AttributeError.
    """
    return spark._jvm


def hadoop(spark: SparkSession) -> Any:
    """Return Hadoop's configuration (``SparkSession._jsc``, private, too), with which paths find their file systems."""
    java: Any = spark
    return java._jsc.hadoopConfiguration()


def close_idle_callbacks(spark: SparkSession) -> None:
    """Close the connections by which no thread of Java has called Python since the last call.

    Py4J (``_gateway``, private) keeps one of each ended query, with a thread, and takes no more when files run out.
    """
    context: Any = spark.sparkContext
    context._gateway.java_gateway_server.getCallbackClient().periodicCleanup()


def file_system(spark: SparkSession, directory: str) -> tuple[Any, Any]:
    """Return Hadoop's file system and path of a directory, which need not be on this machine."""
    path = jvm(spark).org.apache.hadoop.fs.Path(directory)
    return path.getFileSystem(hadoop(spark)), path
