"""The Spark session of the pipeline and of ``quotahost report``, with the pipeline's own configuration.

The configuration lies in ``conf/`` beside this file, where ``quotahost pipeline --print-submit`` finds it, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import javaproperties
from pyspark.sql import SparkSession

from quotahost.pipeline.spark import connector
from quotahost.pipeline.spark.resources import path

# Files of the package quotahost.pipeline, for spark.resources.path.
DEFAULTS: Final = "spark/conf/spark-defaults.conf"
LOG4J: Final = "spark/conf/log4j2.properties"
POOLS: Final = "spark/conf/fairscheduler.xml"


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
    jars = {"spark.jars": ",".join(map(str, connector.jars()))} if kafka else {}
    own = defaults() | quiet()
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    own |= jars | {"spark.master": master, "spark.scheduler.allocation.file": path(POOLS).as_uri()}
    return own | (loopback if master.startswith("local") else {})


def quiet() -> dict[str, str]:
    """The options of the driver's JVM, by which Spark's own log begins at WARN; else it starts with some 200 lines."""
    options = "spark.driver.extraJavaOptions"
    return {options: f"{defaults()[options]} -Dlog4j2.configurationFile={path(LOG4J)}"}


def defaults() -> dict[str, str]:
    """The properties in ``spark-defaults.conf``."""
    with Path(path(DEFAULTS)).open() as file:
        return dict(javaproperties.load(file))
