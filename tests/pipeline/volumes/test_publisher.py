"""What is published of a batch, and what not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.spark.session import checkpoint_files, compile_for
from quotahost.pipeline.volumes import aggregate
from quotahost.pipeline.volumes import parse as records
from quotahost.pipeline.volumes.aggregate import Rules
from quotahost.pipeline.volumes.publisher import Publisher
from quotahost.records.cluster_volumes import ClusterRecord, decode
from tests.pipeline.support.records import frame, record, snapshot, volume

MODE = "spark.sql.codegen.factoryMode"
RULES = Rules("home", timedelta(seconds=60), timedelta(days=1), ("1",))


class Sent:
    """A publisher whose records are kept here."""

    def __init__(self, caught_up: bool = True) -> None:
        self.records: list[ClusterRecord] = []
        self.told: list[ClusterRecord] = []
        self.publisher = Publisher(RULES, Leadership(30), self._send, self.told.append, lambda: caught_up)

    def _send(self, key: bytes, value: bytes) -> int:
        self.records.append(decode(key, value))
        return int(datetime.now(UTC).timestamp() * 1000)


def batch(spark: SparkSession, age: float = 0) -> DataFrame:
    at = datetime.now(UTC) - timedelta(seconds=age)
    given = [record(0, "1", snapshot("1", at, [volume("/a", 100, 40)]), at)]
    state = aggregate.state(records.parse(frame(spark, given)), timedelta(minutes=1))
    return state.withColumn("now", lit(at))


def test_a_batch_becomes_a_record_of_its_time(spark: SparkSession) -> None:
    sent = Sent()
    sent.publisher(batch(spark), 7)
    assert [(each.cluster, each.sequence, each.consumed) for each in sent.records] == [("home", 7, 40)]
    assert sent.told == sent.records


def test_while_a_backlog_is_read_nothing_is_published(spark: SparkSession) -> None:
    sent = Sent(caught_up=False)
    sent.publisher(batch(spark), 0)
    assert sent.records == []


def test_a_batch_that_took_too_long_is_not_published(spark: SparkSession) -> None:
    sent = Sent()
    sent.publisher(batch(spark, age=40), 0)
    assert sent.records == []


def test_of_few_brokers_expressions_are_not_compiled_and_of_many_they_are(spark: SparkSession) -> None:
    own = spark.newSession()
    assert own.conf.get(MODE) == "FALLBACK"
    compile_for(own, 10)
    assert own.conf.get(MODE) == "NO_CODEGEN"
    compile_for(own, 10_000)
    assert own.conf.get(MODE) == "FALLBACK"


@pytest.mark.parametrize(
    ("checkpoint", "local"),
    [("/var/c", True), ("c", True), ("file:///c", True), ("hdfs://h/c", False), ("s3a://b/c", False)],
)
def test_only_a_checkpoint_in_this_machine_is_written_without_hadoops_programs(
    checkpoint: str, local: bool
) -> None:
    assert bool(checkpoint_files(checkpoint)) == local
