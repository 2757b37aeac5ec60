"""Where the rows of a batch or a stream go: records of a Kafka topic, or nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pyspark.sql import DataFrame, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamWriter

_Writer = TypeVar("_Writer", DataFrameWriter, DataStreamWriter)


def spark_options(client: Mapping[str, str]) -> dict[str, str]:
    """Kafka's configuration, in Java's names, as options of Spark's Kafka source and sink."""
    return {f"kafka.{name}": value for name, value in client.items()}


def kafka_sink(writer: _Writer, topic: str, client: Mapping[str, str]) -> _Writer:
    """A writer of key, value and maybe headers, as records that all replicas have; ``client`` in Java's names."""
    # acks comes last: an operator's own setting must not weaken it.
    options = {"topic": topic, **spark_options(client), "kafka.acks": "all"}
    return writer.format("kafka").options(**options)


def bring_forward(state: DataFrame) -> None:
    """Read the rows of a query with a state without using them: Spark keeps a state only if its rows are read."""
    state.write.format("noop").mode("overwrite").save()
