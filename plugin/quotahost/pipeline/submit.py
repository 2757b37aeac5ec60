"""The spark-submit line for a cluster."""

from __future__ import annotations

import shlex
from typing import Any

from quotahost.pipeline.options import Options
from quotahost.pipeline.spark import connector
from quotahost.pipeline.spark.resources import path
from quotahost.pipeline.spark.session import DEFAULTS, POOLS


def submit_line(options: Options, spark: str) -> str:
    """One command in several lines, to be run where this package is installed; it holds no secret.

    Args:
        options: what the pipeline is to be told; ``kafka`` stays in the environment.
        spark: Spark's master, such as ``spark://host:7077``.

    Raises:
        ConnectorError: the connector's jars can't be had.
    """
    parts = [
        ["spark-submit", "--master", spark],
        ["--properties-file", str(path(DEFAULTS))],
        ["--conf", f"spark.scheduler.allocation.file={path(POOLS).as_uri()}"],
        ["--jars", ",".join(map(str, connector.jars()))],
        [str(path("main.py"))],
        *([f"--{name.replace('_', '-')}", value] for name, value in _given(options).items()),
    ]
    return " \\\n  ".join(shlex.join(part) for part in parts)


def _given(options: Options) -> dict[str, str]:
    """What differs from the defaults, as text."""
    told: dict[str, Any] = options.model_dump(exclude_defaults=True, exclude={"kafka", "master"})
    return {name: _text(value) for name, value in told.items()}


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value.total_seconds():g}s" if hasattr(value, "total_seconds") else str(value)
