"""Which batches the publisher publishes, and which not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from quotahost.pipeline.kafka.leadership import Leadership
from quotahost.pipeline.spark.session import checkpoint_files
from quotahost.pipeline.volumes import aggregate
from quotahost.pipeline.volumes import parse as records
from quotahost.pipeline.volumes.aggregate import Rules
from quotahost.pipeline.volumes.publisher import Publisher
from quotahost.records.cluster_volumes import ClusterRecord, decode, encode
from tests.pipeline.support.records import frame, record, snapshot, volume

RULES = Rules("home", timedelta(seconds=60), timedelta(days=1), ("1",))


class Sent:
    """The output of a publisher, which keeps its records here."""

    def __init__(self, caught_up: bool = True) -> None:
        self.records: list[ClusterRecord] = []
        self.made: list[ClusterRecord] = []
        self._caught_up = caught_up
        self.publisher = Publisher(RULES, Leadership(30), self)

    def send(self, record: ClusterRecord) -> int:
        self.records.append(decode(record.cluster.encode(), encode(record)))
        return int(datetime.now(UTC).timestamp() * 1000)

    def published(self, record: ClusterRecord, standing_by: bool) -> None:
        self.made.append(record)

    def caught_up(self) -> bool:
        return self._caught_up


def batch(spark: SparkSession, age: float = 0) -> DataFrame:
    at = datetime.now(UTC) - timedelta(seconds=age)
    given = [record(0, "1", snapshot("1", at, [volume("/a", 100, 40)]), at)]
    state = aggregate.state(records.parse(frame(spark, given)), timedelta(minutes=1))
    return state.withColumn("now", lit(at))


def test_a_batch_becomes_a_record_of_its_time(spark: SparkSession) -> None:
    sent = Sent()
    sent.publisher(batch(spark), 7)
    assert [(each.cluster, each.sequence, each.consumed) for each in sent.records] == [("home", 7, 40)]
    assert sent.made == sent.records


def test_while_a_backlog_is_read_nothing_is_published(spark: SparkSession) -> None:
    sent = Sent(caught_up=False)
    sent.publisher(batch(spark), 0)
    assert sent.records == []


def test_a_batch_that_took_too_long_is_not_published(spark: SparkSession) -> None:
    sent = Sent()
    sent.publisher(batch(spark, age=40), 0)
    assert sent.records == []


@pytest.mark.parametrize(
    ("checkpoint", "local"),
    [("/var/c", True), ("c", True), ("file:///c", True), ("hdfs://h/c", False), ("s3a://b/c", False)],
)
def test_only_a_checkpoint_in_this_machine_is_written_without_hadoops_programs(checkpoint: str, local: bool) -> None:
    assert bool(checkpoint_files(checkpoint)) == local
