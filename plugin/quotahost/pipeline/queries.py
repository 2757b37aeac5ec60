"""The streaming queries read Kafka's topics, compute volumes, shares, dead letters and history, and keep checkpoints.

1. ``volumes`` computes the volumes of all brokers from snapshots and ticks, for :mod:`quotahost.pipeline.publisher`.
2. ``refused`` copies refused snapshots and refused usage records to the dead letters.
3. ``shares`` keeps the latest usage record of each broker, for :mod:`quotahost.pipeline.shares`.
4. ``history``, ``usage`` and ``budgets`` append the same records to Parquet (:mod:`quotahost.pipeline.history`).

Spark's scheduler has a pool for each of the queries 1 to 3 and one for the queries 4 (spark/conf/fairscheduler.xml), so
that the volumes come first while cores are short. All queries cut timestamps that are ahead of Kafka's clock.

Dead letters are copies of the refused snapshots and usage records, with the reasons, in a topic of their own. An
operator finds there the wrong records of a broker or of another client. Their query judges every record a second time,
so that no query delays another; that costs 1 % of a core while 1,000 snapshots arrive in a second. It writes each
letter at least once, again with the same key, because Spark advances the checkpoint only after the sink.
"""

import math
from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline import history, shares
from quotahost.pipeline.clients import TIMEOUTS, JvmKafka
from quotahost.pipeline.clock import TOLERANCE_MS, KafkaClock
from quotahost.pipeline.cluster import cut_strangers, state
from quotahost.pipeline.frames import BATCH_TIME, Batch, in_a_line, kafka_sink, large_of_stranger, spark_options, sql
from quotahost.pipeline.monitoring import DEAD_LETTERS
from quotahost.pipeline.options import Options
from quotahost.pipeline.session import close_idle_callbacks
from quotahost.pipeline.snapshots import parse
from quotahost.records.fields import MS
from quotahost.records.topics import REFUSED, TICKS, USAGE

_FETCH: Final = {  # to read a million small records quickly
    # At the end of the log a fetch waits for new records, and the next batch's fetch starts only after it returns.
    "kafka.fetch.max.wait.ms": "10",
    # Spark keeps the last poll of each task and the last fetch of its consumer for minutes: larger ones fill the heap.
    "kafka.max.poll.records": "2000",
    "kafka.max.partition.fetch.bytes": "2097152",
    # Otherwise a broker recreates a deleted topic, without compaction (auto.create.topics.enable).
    "kafka.allow.auto.create.topics": "false",
    # A batch that was planned before a topic lost partitions waits for their records; by default it waits for minutes.
    "kafkaConsumer.pollTimeoutMs": "20000",
    **spark_options(TIMEOUTS),
}
# The least number of records in a task. A full batch has one task for each core: each task passes on the latest
# snapshots of each broker, and one core merges them (docs/benchmarks.md).
_TASK: Final = 62_500
# A running task keeps its core until it ends, even if the volumes need the core, so tasks that can wait are short.
_TASK_THAT_CAN_WAIT: Final = 20_000
# The history starts a batch only every five minutes: with batches of the others' size it would fall behind forever.
_TIMES_AS_MANY: Final = 10
# A batch costs a good part of a second of a core, and frequent checks for new records cost as much.
_DEAD_LETTERS_EVERY: Final = timedelta(seconds=5)
SHARES_EVERY: Final = timedelta(milliseconds=500)
#: The bytes that a dead letter keeps of a refused record's value, and of its key.
MAX_VALUE: Final = 64 * 1024
MAX_KEY: Final = 1024


def place(directory: str, query: str) -> str:
    """Return the folder of a query's checkpoint in the directory of the option ``checkpoint``."""
    return f"{directory.rstrip('/')}/{query}"


class Queries:
    """Starts the queries, each with a checkpoint of its own and in its pool of the scheduler."""

    def __init__(self, spark: SparkSession, options: Options, own: str, clock: KafkaClock, kafka: JvmKafka) -> None:
        """Start nothing yet; ``own`` is the id of the bootstrap's cluster, which lists its brokers."""
        self._spark, self._options, self._own, self._clock, self._kafka = spark, options, own, clock, kafka
        self._client, self._clusters = options.client(), options.clusters(own)
        self._usage = options.named(USAGE)
        #: The ids of all brokers that the own cluster has listed since the start, including those that are down now.
        #: Queries that start later treat any other broker id as an invention of another client.
        self.listed = frozenset[str]()

    def volumes(self, publish: Batch) -> StreamingQuery:
        """Start the query ``volumes``; ``publish`` takes the volumes of all brokers with each batch.

        The query drops no snapshot for its age: the last snapshot of a fenced broker always counts.
        """
        ticks = self._options.named(TICKS)
        raw = self._read((*self._clusters, ticks), self._task())
        # A tick only causes a batch, so its row is dropped.
        good = parse(raw, self._clusters, self._options.validity).where(f"error IS NULL AND topic <> '{ticks}'")
        good = cut_strangers(good, self._own, self.listed)
        return self._start_complete("volumes", state(good, self._options.fill_window), list(self._clusters), publish)

    def registered(self, brokers: Collection[str]) -> None:
        """Take the ids of the brokers that the own cluster lists now."""
        self.listed |= frozenset(brokers)

    def shares(self, publish: Batch) -> StreamingQuery:
        """Start the query ``shares``; ``publish`` takes the latest usage of all brokers with each batch."""
        # Usage of brokers that are long gone is dropped, by the clock's correction at the query's start. If the
        # correction changes, the job restarts the query.
        expiry = self._options.expiry // MS - self._clock.ahead
        recent = f"unix_millis(ts) >= unix_millis({BATCH_TIME}) - {expiry}"
        good = self._usage_records(self._task()).where("error IS NULL").where(recent)
        # Only brokers that the cluster has listed get shares, so large records of other brokers are dropped.
        good = good.where(~large_of_stranger("brokerId", self.listed))
        latest = self._spark.sql(sql("usage"), good=good)
        return self._start_complete("shares", latest, [self._usage], publish, SHARES_EVERY)

    def dead_letters(self) -> StreamingQuery:
        text = sql("refused", value_bytes=MAX_VALUE, key_bytes=MAX_KEY)
        letters = self._spark.sql(text, parsed=self._snapshots(), usage=self._usage_records(_TASK_THAT_CAN_WAIT))
        # Spark reports this count with the batch's progress, so the metric needs no second pass.
        counted = letters.observe(DEAD_LETTERS, F.count("key").alias(DEAD_LETTERS))
        writer = kafka_sink(counted.writeStream, self._options.named(REFUSED), self._client)
        return self._start(DEAD_LETTERS, writer, _DEAD_LETTERS_EVERY)

    def record(self, part: str, directory: str) -> StreamingQuery:
        """Start the query that appends a part of the history, in ``directory`` or beside it."""
        self._prepare("history")
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
        """Return the number of records in a task of the queries with priority."""
        return max(_TASK, math.ceil(self._options.batch / self._spark.sparkContext.defaultParallelism))

    def _read(self, topics: Collection[str], task: int, times: int = 1) -> DataFrame:
        """Return a stream of the topics: ``task`` records in a task, ``times`` the option ``batch`` in a batch."""
        source = self._spark.readStream.format("kafka").options(**spark_options(self._client)).options(**_FETCH)
        # If there is no checkpoint, a query starts at the earliest record and rebuilds its state from compacted topics.
        source = source.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest")
        # A compacted topic keeps the latest record of each broker, so lost older records do no harm.
        source = source.option("failOnDataLoss", "false").option("maxOffsetsPerTrigger", times * self._options.batch)
        raw = source.option("maxRecordsPerPartition", task).load()
        # A leader's clock may be wrong. A timestamp that is ahead would hide all later records up to that time, so it
        # is cut. One that is behind would be hidden by earlier ones, and all brokers would look silent, so records from
        # after the query's start are at most half as old as validity; older records are a backlog, of any age. min()
        # leaves brokers silent by a clock that is ahead, because KafkaClock doesn't believe such a clock.
        # least() would make the column not nullable, and Spark would refuse the states of earlier versions.
        ahead, half = self._clock.ahead, self._options.validity // MS // 2
        latest, earliest = (
            f"timestamp_millis(unix_millis({BATCH_TIME}) + {ms})" for ms in (ahead + TOLERANCE_MS, min(0, ahead) - half)
        )
        ends = {} if task == _TASK_THAT_CAN_WAIT else self._kafka.ends(topics)
        new = [f"topic = '{topic}' AND partition = {part} AND offset >= {end}" for (topic, part), end in ends.items()]
        dated = f"""CASE WHEN timestamp > {latest} THEN {latest}
            WHEN ({" OR ".join(new) or "FALSE"}) AND timestamp < {earliest} THEN {earliest}
            ELSE timestamp END AS timestamp"""
        return raw.selectExpr("key", "value", "topic", "partition", "offset", dated)

    def _start_complete(
        self, name: str, rows: DataFrame, topics: list[str], publish: Batch, least: timedelta = timedelta()
    ) -> StreamingQuery:
        def of_topics(frame: DataFrame, number: int) -> None:
            # The state may have rows of a topic that is no longer read; they would count each broker a second time.
            publish(frame.where(F.col("topic").isin(topics)), number)

        # Each batch outputs all rows, not only changed rows, because a broker that falls silent changes no row.
        return self._start(name, rows.writeStream.outputMode("complete").foreachBatch(in_a_line(of_topics)), least)

    def _start(self, name: str, writer: Any, least: timedelta) -> StreamingQuery:
        self._prepare(name)
        # Spark's default trigger starts a batch as soon as a record arrives; a batch costs the same whatever its size.
        every = f"{round(max(least, self._options.interval) / MS)} milliseconds"
        writer = writer.queryName(name).option("checkpointLocation", place(self._options.checkpoint, name))
        query: StreamingQuery = writer.trigger(processingTime=every).start()
        return query

    def _prepare(self, pool: str) -> None:
        """Set the scheduler's pool of the query that this thread starts next, and close what ended queries left."""
        close_idle_callbacks(self._spark)
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
