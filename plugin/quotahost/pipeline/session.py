"""The Spark session of the pipeline and its tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import javaproperties
from pyspark.sql import SparkSession

from quotahost.pipeline import connector
from quotahost.pipeline.resources import path

DEFAULTS = "spark-defaults.conf"
LOG4J = "log4j2.properties"
POOLS = "fairscheduler.xml"


def session(name: str, master: str = "local[*]", **conf: str) -> SparkSession:
    """A session with the pipeline's defaults and, where this program was not launched by spark-submit, its jars.

    Under spark-submit what it was given stays: master, memory, jars. ``conf`` names have ``_`` for ``.``.

    Raises:
        ConnectorError: the connector's jars can't be had.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take whatever python3 is in PATH
    builder = SparkSession.builder.appName(name)
    for key, value in defaults().items() if submitted() else local(master).items():
        if not submitted() or key.startswith("spark.sql."):
            builder = builder.config(key, value)
    for key, value in conf.items():
        builder = builder.config(key.replace("_", "."), value)
    return builder.getOrCreate()


def submitted() -> bool:
    """Whether spark-submit started this program."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def local(master: str) -> dict[str, str]:
    """The configuration of a session whose driver is started here."""
    jars = ",".join(map(str, connector.jars()))
    own = defaults()
    own["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={path(LOG4J)}"
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    given = {
        "spark.master": master,
        "spark.jars": jars,
        "spark.scheduler.allocation.file": path(POOLS).as_uri(),
    }
    return own | given | (loopback if master.startswith("local") else {})


def defaults() -> dict[str, str]:
    """What ``spark-defaults.conf`` says."""
    with Path(path(DEFAULTS)).open() as file:
        return dict(javaproperties.load(file))
