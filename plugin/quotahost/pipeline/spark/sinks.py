"""Where the rows of a batch go: records of a topic, or nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame


def spark_options(client: Mapping[str, str]) -> dict[str, str]:
    """Kafka's configuration, in Java's names, as Spark's options."""
    return {f"kafka.{name}": value for name, value in client.items()}


def write(records: DataFrame, topic: str, client: Mapping[str, str]) -> None:
    """Key, value and maybe headers as records that all replicas have; ``client`` is Kafka's, in Java's names."""
    sink = records.write.format("kafka").option("topic", topic).options(**spark_options(client))
    sink.option("kafka.acks", "all").save()


def bring_forward(state: DataFrame) -> None:
    """Read the rows of a query with a state without using them: Spark keeps a state only of rows that are read."""
    state.write.format("noop").mode("overwrite").save()
