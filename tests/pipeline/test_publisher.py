"""Which batches the publisher publishes, and which not; and that a cluster's failure is its own."""

import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from harness.rollup import Record
from quotahost.pipeline import cluster as aggregate
from quotahost.pipeline import snapshots as records
from quotahost.pipeline.clock import WITNESSES, KafkaClock, Written
from quotahost.pipeline.cluster import Rules
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.publisher import Publisher
from quotahost.records.cluster_volumes import MAX_BYTES, ClusterRecord, decode, encode
from quotahost.records.fields import MAX_NAME
from tests.pipeline.support.records import NOW, NOW_MS, Planned, record, snapshot, volume

RULES = Rules("home", timedelta(seconds=60), timedelta(days=1), ("1",))
CLUSTERS = {"snapshots": "home", "mirrored": "away"}


class Sent:
    """What a publisher publishes; records of the cluster ``failing`` can't be written.

    Its clock stands at NOW, so a busy machine makes no record late.
    """

    def __init__(self, caught_up: bool = True, failing: str = "") -> None:
        self.reading: bool | None = False
        self.ticks = 0
        self.records: list[ClusterRecord] = []
        self._failing = failing
        self.later = 0  # ms
        self.clock = KafkaClock(lambda: NOW_MS + self.later, lambda: self.later)
        self.progress = Progress()
        leader: Any = SimpleNamespace(run=7, stands_by=lambda: False)
        self.publisher = Publisher(
            RULES, leader, self.clock, self.progress, 5.0, self._send, self._tick,
            lambda: caught_up, lambda: self.reading,
        )  # fmt: skip

    def _tick(self) -> None:
        self.ticks += 1

    def _send(self, record: ClusterRecord) -> Written:
        if record.cluster == self._failing:
            raise OSError("it can't be written")
        self.records.append(decode(record.cluster.encode(), encode(record)))
        return Written(*[self.clock.now()] * 3)

    def unpublished(self, cluster: str, reason: str) -> float | None:
        labels = {"cluster": cluster, "reason": reason}
        return self.progress.registry.get_sample_value("quotahost_pipeline_unpublished_total", labels)


def batch(spark: SparkSession, age: float = 0, topics: tuple[str, ...] = ("snapshots",)) -> DataFrame:
    at = NOW - timedelta(seconds=age)
    given = [record(n, "1", snapshot("1", at, [volume("/a", 100, 40)]), at, topic) for n, topic in enumerate(topics)]
    return volumes(spark, given, at)


def state(given: DataFrame) -> DataFrame:
    good = records.parse(given, CLUSTERS).where("error IS NULL")
    return aggregate.state(good, timedelta(minutes=1)).drop("now")


STATE = Planned(state)


def volumes(spark: SparkSession, given: list[Record], at: datetime) -> DataFrame:
    return STATE.frame(spark, given).withColumn("now", lit(at))


def test_while_a_backlog_is_read_nothing_is_published(spark: SparkSession) -> None:
    sent = Sent(caught_up=False)
    sent.publisher(batch(spark), 0)
    assert sent.records == []
    assert sent.ticks == 1, "it causes the next batch, also at the end of the backlog"


def test_a_batch_that_took_too_long_is_not_published_but_logged_once_and_counted(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    sent, late = Sent(), batch(spark, age=55)
    for number in range(2):
        sent.publisher(late, number)
    assert sent.records == []
    assert sent.unpublished("home", "late") == 2
    assert ["a batch has taken" in each.getMessage() for each in caplog.records] == [True]


@pytest.mark.proves("faults.clock")
def test_a_clock_of_kafkas_by_which_all_brokers_are_silent_is_not_believed(spark: SparkSession) -> None:
    """That of a broker that leads a topic of the pipeline, learned before any snapshot was read."""
    sent = Sent()
    for _ in range(WITNESSES):
        sent.clock.correct(Written(NOW_MS, NOW_MS + 3_600_000, NOW_MS))
    for number in range(2):
        sent.publisher(batch(spark), number)
    assert sent.clock.ahead == 0
    assert (sent.records[-1].reporting, sent.records[-1].stale) == (1, 0)


def test_without_news_the_same_is_published_again_as_newer_and_of_that_time(spark: SparkSession) -> None:
    sent = Sent()
    sent.publisher(batch(spark, topics=("snapshots", "mirrored")), 7)
    sent.later = 30_000
    assert sent.publisher.again()
    home, away, *again = sent.records
    assert {(each.cluster, each.sequence, each.consumed) for each in (home, away)} == {("home", 0, 40), ("away", 0, 40)}
    for first, second in zip((home, away), again, strict=True):
        assert second.computed_at > first.computed_at
        assert second == replace(first, sequence=1, computed_at=second.computed_at)
    sent.publisher(batch(spark), 0)
    assert sent.records[-1].sequence == 2, "a query that begins anew has its first batch again, and newer records"


def test_a_batch_is_needed_when_something_came_or_who_is_registered_fresh_or_known_has_changed(
    spark: SparkSession,
) -> None:
    sent = Sent()
    assert not sent.publisher.again()
    sent.publisher(batch(spark, age=10), 7)
    for sent.reading in (True, None):
        assert not sent.publisher.again()
    sent.reading = False
    sent.publisher.registered(["1", "2"])
    assert not sent.publisher.again()
    sent.publisher.registered(["1"])
    assert sent.publisher.again()
    sent.later = 60_000  # the snapshot is older than validity
    assert not sent.publisher.again()
    assert [each.sequence for each in sent.records] == [0, 1]
    sent.later = 0
    sent.publisher(batch(spark).withColumn("seen", lit(NOW - timedelta(hours=23))), 9)
    assert sent.records[-1].stale == 1
    sent.later = 3_000_000
    assert sent.publisher.again()
    sent.later = 3_700_000  # it expires
    assert not sent.publisher.again()


def test_a_record_that_cannot_be_written_is_counted_and_the_other_clusters_go_on(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    sent = Sent(failing="home")
    for number in range(2):
        sent.publisher(batch(spark, topics=("snapshots", "mirrored")), number)
    assert [each.cluster for each in sent.records] == ["away", "away"]
    assert not sent.publisher.again(), "a batch makes it anew"
    assert sent.unpublished("home", "failed") == 2
    assert [each.levelno for each in caplog.records] == [logging.ERROR]


def test_a_record_that_cannot_be_made_is_counted_and_the_other_clusters_go_on(spark: SparkSession) -> None:
    sent = Sent()
    rows = batch(spark, topics=("snapshots", "mirrored"))
    broken = rows.withColumn("fillRate", lit(None).cast("double")).selectExpr(
        "* EXCEPT (offline)", "if(cluster = 'away' AND first, array(CAST(NULL AS STRING)), NULL) AS offline"
    )
    sent.publisher(broken.select(rows.columns), 0)
    assert [each.cluster for each in sent.records] == ["home"]
    assert sent.unpublished("away", "failed") == 1


def test_whatever_brokers_name_a_record_of_their_cluster_fits_into_one_of_kafkas(spark: SparkSession) -> None:
    longest = "\U0001f989" * (MAX_NAME - 4)  # twelve bytes each in JSON

    def one(number: int) -> Record:
        # As UTF-8: escaped, the names alone would exceed what a snapshot may have.
        disks = [volume(f"{n}{number:03}{longest}", 1000 + 10 * number + n, 999) for n in range(3)]
        text = snapshot(f"{number:04}{longest}", NOW, disks, offlineLogDirs=[f"{number:04}{longest}"])
        value = json.dumps(json.loads(text), ensure_ascii=False).encode()
        return record(number, f"{number:04}{longest}", value)

    given = [one(number) for number in range(100)]
    sent = Sent()
    sent.publisher(volumes(spark, given, NOW), 0)
    assert [each.volume_count for each in sent.records] == [300]
    assert len(encode(sent.records[0])) < MAX_BYTES
    # And so do the ids of brokers that have fallen silent.
    late = Sent()
    late.publisher(volumes(spark, given, NOW).withColumn("seen", lit(NOW - timedelta(minutes=2))), 0)
    assert [each.stale for each in late.records] == [100]
