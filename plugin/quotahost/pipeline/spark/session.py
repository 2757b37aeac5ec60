"""The Spark session of the pipeline and its tools."""

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

# TODO(merge) Whether Spark compiles a batch's expressions: that pays for many brokers only.
#
#   Spark writes the code anew for each batch, some 80 ms, before it finds that it has compiled the same
#   already. Measured
#   on one core: of 100 brokers the roll-up takes 300 ms without and 376 ms with it; of 10,000, 765 ms and
#   566 ms.
#


DEFAULTS = "spark/conf/spark-defaults.conf"


LOG4J = "spark/conf/log4j2.properties"


POOLS = "spark/conf/fairscheduler.xml"


def session(
    name: str, master: str = "local[*]", conf: Mapping[str, str] | None = None, kafka: bool = True
) -> SparkSession:
    """A session with the pipeline's defaults; one that runs already in this process is used as it is.

    Under spark-submit what it was given stays: master, memory, jars.

    Args:
        name: shown as the application's.
        master: where it runs.
        conf: Spark's properties, in place of the defaults.
        kafka: whether Spark's Kafka connector is needed.

    Raises:
        ConnectorError: the connector's jars can't be had.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take whatever python3 is in PATH
    builder = SparkSession.builder.appName(name)
    for key, value in (_own(master, kafka) | dict(conf or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def checkpoint_files(checkpoint: str) -> dict[str, str]:
    """How a checkpoint's files are written, if in this machine, for a batch has three.

    By FileContext, Spark's own choice, Hadoop starts several programs for each: 50 ms; by FileSystem 12, and 7 where it
    doesn't write another file with checksums beside each. The state's are LZ4, which has checksums of its own.
    """
    scheme = urlsplit(checkpoint).scheme
    if scheme != "file" and (scheme or submitted()):
        return {}
    return {
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }


def submitted() -> bool:
    """Whether spark-submit started this program."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _own(master: str, kafka: bool) -> dict[str, str]:
    if submitted():
        return {key: value for key, value in defaults().items() if key.startswith("spark.sql.")}
    return local(master, kafka)


def local(master: str, kafka: bool = True) -> dict[str, str]:
    """The configuration of a session whose driver is started here."""
    jars = {"spark.jars": ",".join(map(str, connector.jars()))} if kafka else {}
    own = defaults()
    own["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={path(LOG4J)}"
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    own |= jars | {"spark.master": master, "spark.scheduler.allocation.file": path(POOLS).as_uri()}
    return own | (loopback if master.startswith("local") else {})


def defaults() -> dict[str, str]:
    """What ``spark-defaults.conf`` says."""
    with Path(path(DEFAULTS)).open() as file:
        return dict(javaproperties.load(file))


_MANY: Final = 2000  # brokers


_MODE: Final = "spark.sql.codegen.factoryMode"


def compile_for(session: SparkSession, brokers: int) -> None:
    """From the next batch of this session, which is the query's own, by how many brokers are remembered.

    Before the first, Spark compiles: there may be a backlog.
    """
    session.conf.set(_MODE, "FALLBACK" if brokers >= _MANY else "NO_CODEGEN")
