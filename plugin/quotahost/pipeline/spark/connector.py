"""The jars of Spark's Kafka connector, which PySpark doesn't contain and the wheel carries.

``make build`` has Maven put them into this package (``tools/spark-connector.xml`` names them); nothing is downloaded
while the pipeline runs. :mod:`quotahost.pipeline.spark.session` and the line for spark-submit name them to Spark.
"""

from __future__ import annotations

from pathlib import Path

from quotahost.errors import QuotahostError
from quotahost.pipeline.spark.resources import path


class ConnectorError(QuotahostError):
    """The connector's jars are missing; the message names the remedy."""

    exit_code = 2


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
