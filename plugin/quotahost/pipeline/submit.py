"""The spark-submit line by which an operator runs the pipeline on a cluster (``quotahost pipeline --print-submit``)."""

from __future__ import annotations

import shlex

from quotahost.pipeline.options import Options, as_text, option
from quotahost.pipeline.spark import connector
from quotahost.pipeline.spark.resources import path
from quotahost.pipeline.spark.session import DEFAULTS, POOLS, quiet


def submit_line(options: Options, master: str) -> str:
    """One command in several lines, without any secret, for a machine where this package is installed.

    Args:
        options: the pipeline's; those that differ from the defaults appear. ``kafka`` stays in the environment.
        master: Spark's master, such as ``spark://host:7077``.

    Raises:
        ConnectorError: the connector's jars are missing.
    """
    # ``kafka`` holds secrets: other users of the machine can read a process's arguments.
    given = options.model_dump(exclude_defaults=True, exclude={"kafka", "master"})
    parts = [
        ["spark-submit", "--master", master],
        ["--properties-file", str(path(DEFAULTS))],
        *(["--conf", f"{name}={value}"] for name, value in quiet().items()),
        ["--conf", f"spark.scheduler.allocation.file={path(POOLS).as_uri()}"],
        ["--jars", ",".join(map(str, connector.jars()))],
        [str(path("main.py"))],
        *([option(name), as_text(value)] for name, value in given.items()),
    ]
    return " \\\n  ".join(map(shlex.join, parts))
