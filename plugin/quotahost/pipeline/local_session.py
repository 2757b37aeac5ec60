"""A small Spark in this process, for what reads the history."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from typing import Final

from pyspark.sql import SparkSession

_SMALL: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(name: str, master: str = "local[*]", **conf: str) -> SparkSession:
    """A session with 1 GB for the driver; one that runs already in this process is used as it is.

    Args:
        name: shown as the application's.
        master: where it runs.
        conf: Spark's properties, in place of the small ones.

    Raises:
        pyspark.errors.PySparkRuntimeError: no Java 17 or newer was found.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = files("quotahost.pipeline").joinpath("log4j2-report.properties")
    builder = SparkSession.builder.appName(name).master(master)
    builder = builder.config("spark.driver.extraJavaOptions", f'"-Dlog4j2.configurationFile={quiet}"')
    for key, value in (_SMALL | conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
