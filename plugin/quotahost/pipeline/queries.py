"""The streaming queries: what each reads (dates ahead of Kafka's clock cut), computes and writes, and its checkpoint.

1. ``volumes``: snapshots and ticks -> the volumes of all brokers, for :mod:`quotahost.pipeline.publisher`.
2. ``refused``: refused snapshots and usage records -> dead letters.
3. ``shares``: usage records -> the newest of each broker, for :mod:`quotahost.pipeline.shares`.
4. ``history``, ``usage`` and ``budgets``: the same records -> Parquet (:mod:`quotahost.pipeline.history`).

Each query has a pool of Spark's scheduler for itself (spark/conf/fairscheduler.xml), so that the volumes come first
while cores are short.

Dead letters are copies of the refused snapshots and usage records, in a topic of their own, with the reason of each: an
operator reads there what a broker, or a stranger, published wrongly. Their query judges every record a second time,
apart from the queries that use the good ones: so it writes a dead letter at least once (Spark's checkpoint proceeds
only after the sink), and neither holds up the other. A record that is read again gives a dead letter with the same
key. The second reading costs little: 1 % of a core while 1,000 snapshots arrive in a second.
"""

import math
from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline import history, shares
from quotahost.pipeline.clock import TOLERANCE_MS, KafkaClock
from quotahost.pipeline.cluster import cut_strangers, state
from quotahost.pipeline.frames import BATCH_TIME, Batch, in_a_line, kafka_sink, large_of_stranger, spark_options, sql
from quotahost.pipeline.monitoring import DEAD_LETTERS
from quotahost.pipeline.options import Options
from quotahost.pipeline.snapshots import parse
from quotahost.records.fields import MS
from quotahost.records.topics import REFUSED, TICKS, USAGE

_FETCH: Final = {  # for a million small records in a hurry
    # At the end of the log a fetch that waits holds up the fetch of the next batch until it returns empty.
    "kafka.fetch.max.wait.ms": "10",
    # Spark keeps each task's last poll and its consumer's last fetch for minutes: larger ones fill the heap.
    "kafka.max.poll.records": "2000",
    "kafka.max.partition.fetch.bytes": "2097152",
    # Else a broker makes a topic that somebody has deleted anew, without compaction (auto.create.topics.enable).
    "kafka.allow.auto.create.topics": "false",
}
# Each core has one task of a full batch, of so many records at least: each task hands on the newest snapshots of each
# broker that it has read, and one core merges them (docs/benchmarks.md).
_TASK: Final = 62_500
# A task that begins while the volumes need no core keeps the core until it ends, so these tasks are short.
_TASK_THAT_CAN_WAIT: Final = 20_000
# The history begins a batch every five minutes only: with what suffices for the others it would fall behind for ever.
_TIMES_AS_MANY: Final = 10
# A batch costs a good part of a second of a core, and so does looking for news often.
_DEAD_LETTERS_EVERY: Final = timedelta(seconds=5)
SHARES_EVERY: Final = timedelta(milliseconds=500)
#: Bytes of a refused record's value and of its key that its dead letter keeps.
MAX_VALUE: Final = 64 * 1024
MAX_KEY: Final = 1024


def place(directory: str, query: str) -> str:
    """The checkpoint of a query in the directory of the option ``checkpoint``."""
    return f"{directory.rstrip('/')}/{query}"


class Queries:
    """Starts the queries, each in a pool of the scheduler and with a checkpoint of its own."""

    def __init__(self, spark: SparkSession, options: Options, own: str, clock: KafkaClock) -> None:
        """Start nothing yet; ``own`` is the id of the cluster that lists its brokers."""
        self._spark, self._options, self._own, self._clock = spark, options, own, clock
        self._client, self._clusters = options.client(), options.clusters(own)
        self._usage = options.named(USAGE)
        #: The ids of the brokers that the own cluster has ever listed, also of those that are down. One that it never
        #: listed is an invention, for queries that start from now on.
        self.listed = frozenset[str]()

    def volumes(self, publish: Batch) -> StreamingQuery:
        """``publish`` takes the volumes of all brokers with each batch.

        Of a fenced broker the last snapshot counts whatever its age.
        """
        ticks = self._options.named(TICKS)
        raw = self._read((*self._clusters, ticks), self._task())
        # A tick only causes a batch; none of its fields is read.
        good = parse(raw, self._clusters, self._options.validity).where(f"error IS NULL AND topic <> '{ticks}'")
        for topic, cluster in self._clusters.items():
            if cluster == self._own:
                good = cut_strangers(good, topic, self.listed)
        return self._start_complete("volumes", state(good, self._options.fill_window), publish)

    def registered(self, brokers: Collection[str]) -> None:
        """Take the ids of the brokers that the own cluster lists now."""
        self.listed |= frozenset(brokers)

    def shares(self, publish: Batch) -> StreamingQuery:
        """``publish`` takes the newest usage of all brokers with each batch."""
        # Not of brokers long gone. By the clock's correction as it is when the query starts; with another one the job
        # starts it again.
        expiry = self._options.expiry // MS - self._clock.ahead
        recent = f"unix_millis(ts) >= unix_millis({BATCH_TIME}) - {expiry}"
        good = self._usage_records(self._task()).where("error IS NULL").where(recent)
        # Shares are only for brokers that the cluster has listed.
        good = good.where(~large_of_stranger(self._usage, "brokerId", self.listed))
        newest = self._spark.sql(sql("usage"), good=good)

        def of_topic(frame: DataFrame, number: int) -> None:
            # Here, as the state may have rows of a topic that isn't read any more.
            publish(frame.where(F.col("topic") == self._usage), number)

        return self._start_complete("shares", newest, of_topic, SHARES_EVERY)

    def dead_letters(self) -> StreamingQuery:
        text = sql("refused", value_bytes=MAX_VALUE, key_bytes=MAX_KEY)
        letters = self._spark.sql(text, parsed=self._snapshots(), usage=self._usage_records(_TASK_THAT_CAN_WAIT))
        # Spark reports this count with the batch's progress, for the metric: no second pass counts them.
        counted = letters.observe(DEAD_LETTERS, F.count("key").alias(DEAD_LETTERS))
        writer = kafka_sink(counted.writeStream, self._options.named(REFUSED), self._client)
        return self._start(DEAD_LETTERS, writer, _DEAD_LETTERS_EVERY)

    def record(self, part: str, directory: str) -> StreamingQuery:
        """Append a part of the history, in ``directory`` or beside it."""
        self._pool("history")
        if part == history.USAGE:
            records = self._usage_records(_TASK_THAT_CAN_WAIT, _TIMES_AS_MANY)
        else:
            records = self._snapshots(_TIMES_AS_MANY)
        return history.append(records, part, directory)

    def _snapshots(self, times: int = 1) -> DataFrame:
        return parse(self._read(self._clusters, _TASK_THAT_CAN_WAIT, times), self._clusters)

    def _usage_records(self, task: int, times: int = 1) -> DataFrame:
        raw = self._read((self._usage,), task, times)
        return shares.parse(raw, self._own, self._options.validity)

    def _task(self) -> int:
        """Records of one task of a query that goes first."""
        return max(_TASK, math.ceil(self._options.batch / self._spark.sparkContext.defaultParallelism))

    def _read(self, topics: Collection[str], task: int, times: int = 1) -> DataFrame:
        """A stream of the topics: ``task`` records in a task, ``times`` as many as the option ``batch`` in a batch."""
        source = self._spark.readStream.format("kafka").options(**spark_options(self._client)).options(**_FETCH)
        # From the earliest record, so that a lost checkpoint is rebuilt from the compacted topics.
        source = source.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest")
        # A compacted topic keeps the newest record of each broker, so a record that is gone before it was read is no
        # loss.
        source = source.option("failOnDataLoss", "false").option("maxOffsetsPerTrigger", times * self._options.batch)
        raw = source.option("maxRecordsPerPartition", task).load()
        # What a leader whose clock was ahead has dated would hide all that comes before that time. Not by least(): it
        # is never null here, and Spark would refuse the states of earlier versions.
        latest = f"timestamp_millis(unix_millis({BATCH_TIME}) + {self._clock.ahead + TOLERANCE_MS})"
        dated = f"if(timestamp > {latest}, {latest}, timestamp) AS timestamp"
        return raw.selectExpr("key", "value", "topic", "partition", "offset", dated)

    def _start_complete(
        self, name: str, rows: DataFrame, publish: Batch, least: timedelta = timedelta()
    ) -> StreamingQuery:
        # All rows with each batch, not only those that changed: a broker that falls silent changes no row.
        return self._start(name, rows.writeStream.outputMode("complete").foreachBatch(in_a_line(publish)), least)

    def _start(self, name: str, writer: Any, least: timedelta) -> StreamingQuery:
        self._pool(name)
        # Spark's default trigger begins a batch with each record that comes; a batch costs the same whatever is in it.
        every = f"{round(max(least, self._options.interval) / MS)} milliseconds"
        writer = writer.queryName(name).option("checkpointLocation", place(self._options.checkpoint, name))
        query: StreamingQuery = writer.trigger(processingTime=every).start()
        return query

    def _pool(self, name: str) -> None:
        """A query runs in the pool that this thread has when it starts the query."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
