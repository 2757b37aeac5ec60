"""The streaming queries: from which topics, to what, with which checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.errors import QuotahostError
from quotahost.pipeline import shares as usage
from quotahost.pipeline.dead_letters import DeadLetters, counted
from quotahost.pipeline.history.writer import start_history
from quotahost.pipeline.options import Options
from quotahost.pipeline.spark.resources import sql
from quotahost.pipeline.spark.sinks import spark_options
from quotahost.pipeline.volumes import aggregate
from quotahost.pipeline.volumes import parse as records

_FETCH: Final = {  # a million small records in a hurry
    # A fetch that waits at the end of the log holds up the next batch's, until it comes back empty.
    "kafka.fetch.max.wait.ms": "10",
    # Spark keeps each task's last poll and its consumer's last fetch for minutes: larger ones fill the heap.
    "kafka.max.poll.records": "2000",
    "kafka.max.partition.fetch.bytes": "2097152",
}
# Records of a task. Enough tasks of one partition's records that no core waits for long for the last; and a
#   task that
# begins while the volumes need no core has it until it ends.
_TASK: Final = 62_500
_TASK_THAT_CAN_WAIT: Final = 20_000
Batch = Callable[[DataFrame, int], None]
# Where it need not be at once: a batch costs a good part of a second of a core, and so does looking for
#   news often.
_REFUSED_EVERY: Final = timedelta(seconds=5)
_SHARES_EVERY: Final = timedelta(milliseconds=500)


class BatchFailed(QuotahostError):
    """What was to be done with a batch can't be; the query ends, and is started again with the same batch."""


def _brief(work: Batch) -> Batch:
    """In one line: Spark reads an exception's text by a regular expression, whose stack a long one overflows."""

    def done(frame: DataFrame, number: int) -> None:
        try:
            work(frame, number)
        except Exception as problem:
            told = next(iter(str(getattr(problem, "java_exception", problem)).splitlines()), "")
            raise BatchFailed(f"{type(problem).__name__}: {told[:300]}") from None

    return done


class Queries:
    """Starts the queries, each in a pool of the scheduler and with a checkpoint of its own."""

    def __init__(
        self, spark: SparkSession, options: Options, cluster: str, client: Mapping[str, str]
    ) -> None:
        """``cluster`` is that of snapshots without one; ``client`` is Kafka's, in Java's names."""
        self._spark, self._options, self._cluster = spark, options, cluster
        self._client = spark_options(client)

    def volumes(self, publish: Batch) -> StreamingQuery:
        """Snapshots to the volumes of all brokers, handed to ``publish`` as a whole, with each batch."""
        topics = (*self._options.snapshots_topic, self._options.tick_topic)
        parsed = records.parse(self._read(topics))
        no_tick = f"topic <> '{self._options.tick_topic}'"
        good = counted(parsed, f"if({no_tick}, error, NULL)").where(f"error IS NULL AND {no_tick}")
        volumes = aggregate.state(good, self._options.fill_window)
        return self._start(
            "volumes", volumes.writeStream.outputMode("complete").foreachBatch(_brief(publish))
        )

    def refused(self, write: Batch) -> StreamingQuery:
        """Refused snapshots and usage as dead letters, for ``write``; the key is the same when one comes again."""
        parsed = records.parse(self._read(self._options.snapshots_topic, _TASK_THAT_CAN_WAIT))
        dead_letters = self._spark.sql(
            sql("refused"), parsed=parsed, usage=usage.parse(self._read((self._options.usage_topic,)))
        )
        sink = counted(dead_letters, "key").writeStream.foreachBatch(_brief(write))
        return self._start(DeadLetters.NAME, sink, _REFUSED_EVERY)

    def shares(self, divide: Batch) -> StreamingQuery:
        """Usage to the newest of each broker, handed to ``divide`` as a whole, with each batch."""
        good = counted(usage.parse(self._read((self._options.usage_topic,)))).where("error IS NULL")
        newest = self._spark.sql(sql("usage"), args={"cluster": self._cluster}, good=good)
        sink = newest.writeStream.outputMode("complete").foreachBatch(_brief(divide))
        return self._start("shares", sink, _SHARES_EVERY)

    def history(self, directory: str) -> StreamingQuery:
        """Every snapshot that counts to Parquet."""
        parsed = records.parse(self._read(self._options.snapshots_topic, _TASK_THAT_CAN_WAIT))
        self._pool("history")
        return start_history(records.resolved(parsed, self._cluster), directory)

    def _read(self, topics: tuple[str, ...], task: int = _TASK) -> DataFrame:
        source = self._spark.readStream.format("kafka").options(**self._client).options(**_FETCH)
        source = source.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest")
        # A compacted topic holds the newest of each broker, so what is gone before it was read is no loss.
        source = source.option("failOnDataLoss", "false").option("maxOffsetsPerTrigger", self._options.batch)
        return source.option("maxRecordsPerPartition", task).load()

    def _start(self, name: str, writer: Any, least: timedelta = timedelta()) -> StreamingQuery:
        self._pool(name)
        every = f"{round(max(least, self._options.interval).total_seconds() * 1000)} milliseconds"
        place = f"{self._options.checkpoint.rstrip('/')}/{name}"
        query: StreamingQuery = (
            writer.queryName(name).option("checkpointLocation", place).trigger(processingTime=every).start()
        )
        return query

    def _pool(self, name: str) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
