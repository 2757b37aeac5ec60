"""The pipeline's SQL helpers fill in the texts of ``sql/``, date the contents of records, and write rows to Kafka.

A query's text is in ``sql/NAME.sql``. :func:`sql` fills in fragments, such as the time at which a record's contents
were captured (:func:`seen_at`). :func:`kafka_sink` writes rows to a topic.
"""

import json
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import cache
from typing import Final, TypeVar

from pyspark.sql import Column, DataFrame, DataFrameWriter
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from quotahost.base.errors import QuotahostError
from quotahost.base.text import short
from quotahost.pipeline.session import path
from quotahost.records.fields import MAX_DELAY_MS, MS

#: The state keeps a record of up to this many bytes uncut from a broker that the cluster doesn't list.
MAX_OF_STRANGER: Final = 16 * 1024
#: SQL for the time of a batch, in a lambda, because Spark doesn't compile lambdas: with the time in the Java code that
#: Spark generates, each batch would compile that code again.
BATCH_TIME: Final = "get(transform(array(0), x -> current_timestamp()), 0)"
#: A function that handles a batch: it takes the batch's rows and number.
Batch = Callable[[DataFrame, int], None]
_Writer = TypeVar("_Writer", DataFrameWriter, DataStreamWriter)


@cache  # each batch needs two texts
def sql(name: str, **fields: object) -> str:
    """Return the text of ``sql/NAME.sql`` with each ``{field}`` filled in; ``spark.sql`` fills in the DataFrames."""
    text = path(f"sql/{name}.sql").read_text()
    # str.format would fail, because the text also has fields for spark.sql.
    for field, value in fields.items():
        plain = str(value).replace("{", "{{").replace("}", "}}")  # spark.sql formats the text again
        text = text.replace("{" + field + "}", plain)
    return text


# ---- fragments -------------------------------------------------------------------------------------


def seen_at(stated_ms: str, validity: timedelta) -> str:
    """Return SQL for Kafka's ``timestamp`` of a record minus its delay, see :func:`quotahost.records.fields.delay_ms`.

    A record is fresh if ``seen_at >= now - validity``, by Kafka's present time. ``stated_ms`` is SQL for the delay that
    the record states, a BIGINT or ``NULL``. The column ``at`` is the record's own time; it is null for a tombstone,
    which has no delay.
    """
    most = min(validity // MS // 2, MAX_DELAY_MS)
    by_clocks = f"least(greatest(unix_millis(timestamp) - unix_millis(at), 0L), {most}L)"
    stated = f"least(greatest(CAST({stated_ms} AS BIGINT), 0L), {MAX_DELAY_MS}L)"
    # A CASE is needed, because least and greatest skip nulls instead of returning null.
    delay = f"CASE WHEN {stated_ms} IS NOT NULL THEN {stated} WHEN at IS NOT NULL THEN {by_clocks} ELSE 0L END"
    return f"timestamp_millis(unix_millis(timestamp) - ({delay}))"


def large_of_stranger(broker: str, listed: Collection[str]) -> Column:
    """Return whether a record is larger than MAX_OF_STRANGER, and the cluster doesn't list its ``broker`` (a column).

    A client that may write to a topic can invent brokers, and a query's state keeps each: this bounds their size.
    """
    ids = F.from_json(F.lit(json.dumps(sorted(listed))), "ARRAY<STRING>")
    # A tombstone has no length, hence coalesce.
    large = F.coalesce(F.octet_length("value") > MAX_OF_STRANGER, F.lit(False))
    return large & ~F.array_contains(ids, F.col(broker))


# ---- where rows go ---------------------------------------------------------------------------------


def spark_options(client: Mapping[str, str]) -> dict[str, str]:
    """Return Kafka's configuration, in Java's names, as options of Spark's Kafka source and sink."""
    return {f"kafka.{name}": value for name, value in client.items()}


def kafka_sink(writer: _Writer, topic: str, client: Mapping[str, str]) -> _Writer:
    """Return a writer of key, value and optional headers to a topic, with acks=all; ``client`` has Java's names."""
    # acks comes last: an operator's own setting must not weaken it.
    options = {"topic": topic, **spark_options(client), "kafka.acks": "all"}
    return writer.format("kafka").options(**options)


def in_a_line(done: Batch) -> Batch:
    """Return the function with errors of one line: Spark matches them with a regular expression that overflows."""

    def caught(batch: DataFrame, number: int) -> None:
        try:
            done(batch, number)
        except Exception as problem:
            raise QuotahostError(short(problem)) from None

    return caught


def bring_forward(state: DataFrame) -> None:
    """Read a stateful query's rows without using them: Spark keeps a state only if its rows are read."""
    state.write.format("noop").mode("overwrite").save()
