"""What SQL of the pipeline shares: texts in ``sql/``, the time of a record's contents, Kafka's sinks.

A query's text lies in ``sql/NAME.sql``. :func:`sql` fills in the fragments, such as when a record's contents were
captured (:func:`seen_at`). Rows go to a topic by :func:`kafka_sink`.
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

#: Bytes of a record of a broker that the cluster doesn't list, up to which the state takes it as it is.
MAX_OF_STRANGER: Final = 16 * 1024
#: The time of a batch, in SQL. Spark compiles no lambda; a time in the Java that it writes would have that compiled
#: anew for each batch.
BATCH_TIME: Final = "get(transform(array(0), x -> current_timestamp()), 0)"
#: What is done with a batch: its rows, and its number.
Batch = Callable[[DataFrame, int], None]
_Writer = TypeVar("_Writer", DataFrameWriter, DataStreamWriter)


@cache  # two of them are asked for with each batch
def sql(name: str, **fields: object) -> str:
    """The text of ``sql/NAME.sql`` with each ``{field}`` filled in; ``spark.sql`` fills in the names of DataFrames."""
    text = path(f"sql/{name}.sql").read_text()
    # Not str.format: the text has fields that are left for spark.sql.
    for field, value in fields.items():
        plain = str(value).replace("{", "{{").replace("}", "}}")  # spark.sql formats the text once more
        text = text.replace("{" + field + "}", plain)
    return text


# ---- fragments -------------------------------------------------------------------------------------


def seen_at(stated_ms: str, validity: timedelta) -> str:
    """A TIMESTAMP: Kafka's ``timestamp`` of a record less the delay of :func:`quotahost.records.fields.delay_ms`.

    So a record is fresh where ``seen_at >= now - validity``, by Kafka's present time. ``stated_ms`` is SQL for the
    delay that the record states, a BIGINT or ``NULL``. The column ``at`` is the record's own time, null for a
    tombstone, which has no delay.
    """
    most = min(validity // MS // 2, MAX_DELAY_MS)
    by_clocks = f"least(greatest(unix_millis(timestamp) - unix_millis(at), 0L), {most}L)"
    stated = f"least(greatest(CAST({stated_ms} AS BIGINT), 0L), {MAX_DELAY_MS}L)"
    # The CASE, because least and greatest leave nulls out instead of returning null.
    delay = f"CASE WHEN {stated_ms} IS NOT NULL THEN {stated} WHEN at IS NOT NULL THEN {by_clocks} ELSE 0L END"
    return f"timestamp_millis(unix_millis(timestamp) - ({delay}))"


def large_of_stranger(topic: str, broker: str, listed: Collection[str]) -> Column:
    """Whether a record is above MAX_OF_STRANGER, and of a broker that the cluster doesn't list.

    Whoever may write to a topic can invent brokers, and the state of a query remembers each; this bounds what each of
    them takes. ``topic`` is that of the cluster that lists its brokers; ``broker`` is the column with the broker's id.
    """
    known = F.from_json(F.lit(json.dumps(sorted(listed))), "ARRAY<STRING>")
    large = F.octet_length("value") > MAX_OF_STRANGER
    # coalesce, because a tombstone has no length.
    return F.coalesce((F.col("topic") == topic) & large & ~F.array_contains(known, F.col(broker)), F.lit(False))


# ---- where rows go ---------------------------------------------------------------------------------


def spark_options(client: Mapping[str, str]) -> dict[str, str]:
    """Kafka's configuration, in Java's names, as options of Spark's Kafka source and sink."""
    return {f"kafka.{name}": value for name, value in client.items()}


def kafka_sink(writer: _Writer, topic: str, client: Mapping[str, str]) -> _Writer:
    """A writer of key, value and maybe headers, as records that all replicas have; ``client`` in Java's names."""
    # acks comes last: an operator's own setting must not weaken it.
    options = {"topic": topic, **spark_options(client), "kafka.acks": "all"}
    return writer.format("kafka").options(**options)


class BatchFailed(QuotahostError):
    """What was to be done with a batch failed; the query ends, and is started again with the same batch."""


def in_a_line(done: Batch) -> Batch:
    """For ``foreachBatch``: its error of one line, as Spark matches it by a regular expression that overflows."""

    def caught(batch: DataFrame, number: int) -> None:
        try:
            done(batch, number)
        except Exception as problem:
            raise BatchFailed(short(problem)) from None

    return caught


def bring_forward(state: DataFrame) -> None:
    """Read the rows of a query with a state without using them: Spark keeps a state only if its rows are read."""
    state.write.format("noop").mode("overwrite").save()
