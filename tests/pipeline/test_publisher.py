"""The publisher decides which batches to publish, by which clock, and which of two pipelines publishes.

A failure of one cluster affects no other one. Neither a wrong clock of the driver nor one wrong timestamp of Kafka may
make living brokers look dead. Of two pipelines the one launched last wins; when it ends, the other one continues.
"""

import json
import logging
import math
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
from quotahost.pipeline.leadership import Leadership
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.publisher import Publisher
from quotahost.records.cluster_volumes import MAX_BYTES, ClusterRecord, decode, encode
from quotahost.records.fields import MAX_NAME
from tests.pipeline.records import NOW, NOW_MS, Planned, record, snapshot, volume

RULES = Rules("home", timedelta(seconds=60), timedelta(days=1), ("1",))
CLUSTERS = {"snapshots": "home", "mirrored": "away"}


class Sent:
    """A publisher and its records; records of the cluster ``failing`` can't be written.

    Its clock stands at NOW, so a busy machine makes no record late.
    """

    def __init__(self, caught_up: bool = True, failing: str = "") -> None:
        self.records: list[ClusterRecord] = []
        self.ticks = list[int]()
        self._failing = failing
        self.clock = KafkaClock(lambda: NOW_MS, lambda: 0)
        self.progress = Progress()
        leader: Any = SimpleNamespace(role=lambda: (False, 7))
        self.publisher = Publisher(
            RULES, leader, self.clock, self.progress, 5.0, self._send, lambda: self.ticks.append(1), lambda: caught_up
        )

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
    assert len(sent.ticks) == 1, "the tick causes the next batch, also at the end of the backlog"


def test_a_late_batch_is_counted_and_logged_once_instead(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    sent, late = Sent(), batch(spark, age=55)
    for number in range(2):
        sent.publisher(late, number)
    assert sent.records == []
    assert sent.unpublished("home", "late") == 2
    assert ["and is not published" in each.getMessage() for each in caplog.records] == [True]


@pytest.mark.proves("faults.clock")
def test_a_clock_of_kafkas_by_which_all_brokers_are_silent_is_not_believed(spark: SparkSession) -> None:
    """A broker with this clock leads a topic of the pipeline; the publisher has read no snapshot before."""
    sent = Sent()
    for _ in range(WITNESSES):
        sent.clock.correct(Written(NOW_MS, NOW_MS + 3_600_000, NOW_MS))
    for number in range(2):
        sent.publisher(batch(spark), number)
    assert sent.clock.ahead == 0
    assert (sent.records[-1].reporting, sent.records[-1].stale) == (1, 0)


def test_a_cluster_without_any_snapshot_has_no_age_that_would_look_new_for_ever(spark: SparkSession) -> None:
    sent = Sent()
    for given in (batch(spark, age=10), batch(spark).where("broker IS NULL")):
        sent.publisher(given, 0)
    assert [each.newest_snapshot_at is None for each in sent.records] == [False, True]
    age = sent.progress.registry.get_sample_value("quotahost_pipeline_age_seconds", {"cluster": "home"})
    assert age is not None
    assert math.isnan(age)


def test_a_query_that_begins_anew_has_its_first_batch_again_and_newer_records(spark: SparkSession) -> None:
    sent, given = Sent(), batch(spark, topics=("snapshots", "mirrored"))
    for number in (7, 0):
        sent.publisher(given, number)
    assert [(each.sequence, each.consumed) for each in sent.records] == [(0, 40), (0, 40), (1, 40), (1, 40)]


def test_an_unwritten_record_is_counted_and_others_go_on(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    sent = Sent(failing="home")
    for number in range(2):
        sent.publisher(batch(spark, topics=("snapshots", "mirrored")), number)
    assert [each.cluster for each in sent.records] == ["away", "away"]
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
        # The JSON has UTF-8, because the escaped names alone would exceed the largest snapshot.
        disks = [volume(f"{n}{number:03}{longest}", 1000 + 10 * number + n, 999) for n in range(3)]
        text = snapshot(f"{number:04}{longest}", NOW, disks, offlineLogDirs=[f"{number:04}{longest}"])
        value = json.dumps(json.loads(text), ensure_ascii=False).encode()
        return record(number, f"{number:04}{longest}", value)

    given = [one(number) for number in range(100)]
    sent = Sent()
    sent.publisher(volumes(spark, given, NOW), 0)
    assert [each.volume_count for each in sent.records] == [300]
    assert len(encode(sent.records[0])) < MAX_BYTES
    # The ids of silent brokers fit into a record, too.
    late = Sent()
    late.publisher(volumes(spark, given, NOW).withColumn("seen", lit(NOW - timedelta(minutes=2))), 0)
    assert [each.stale for each in late.records] == [100]


# ---- the clock ----


def corrected(clock: KafkaClock, *ahead: int, took: int = 10, times: int = WITNESSES) -> KafkaClock:
    """Corrects the clock by records that Kafka, ``ahead`` ms ahead, wrote just before its answer after ``took`` ms."""
    for _ in range(times):
        for each in ahead:
            clock.correct(Written(NOW_MS - took, NOW_MS + each, NOW_MS))
    return clock


@pytest.fixture
def clock() -> KafkaClock:
    return KafkaClock(lambda: NOW_MS, lambda: 0)


@pytest.mark.proves("faults.clock")
def test_a_wrong_clock_is_corrected_and_logged_once(clock: KafkaClock, caplog: pytest.LogCaptureFixture) -> None:
    corrected(clock, -600_000, times=3 * WITNESSES)
    assert clock.now() == pytest.approx(NOW_MS - 600_000, abs=10)
    assert caplog.messages == ["this machine's clock differs by 600 s from Kafka's; the pipeline uses Kafka's"]


def test_one_timestamp_far_off_moves_no_clock_and_neither_do_answers_that_took_long(clock: KafkaClock) -> None:
    corrected(clock, 0, -(10**12), times=10)  # one is 32 years old
    assert clock.now() == NOW_MS
    corrected(clock, -30_000, 0, took=30_000)  # written immediately and confirmed after 30 s, or written late
    assert clock.now() == NOW_MS
    ahead = corrected(clock, -600_000).ahead
    assert corrected(clock, 0, times=1).ahead == ahead


def test_a_broker_whose_clock_is_off_is_not_believed_while_snapshots_are_new_by_this_ones(clock: KafkaClock) -> None:
    """The broker leads a topic of the pipeline, so its clock would make all brokers look silent."""
    hour = 3_600_000
    assert corrected(clock, hour).ahead == pytest.approx(hour, abs=10), "no snapshot has arrived yet"
    clock.heard(1000, 60_000)
    assert [corrected(clock, ahead).ahead for ahead in (hour, -hour)] == [0, 0]
    clock.heard(61_000, 60_000)  # brokers are silent anyway, so no clock can make them look worse
    assert corrected(clock, hour).ahead > 0


# ---- two pipelines ----

MOST = 2**63 - 1


def claims(run: int, cluster: str = "home") -> tuple[bytes, bytes]:
    return cluster.encode(), encode(ClusterRecord(cluster, run, 0, NOW))


class World:
    """A pipeline of the cluster ``home`` that was launched at NOW."""

    def __init__(self, *records: tuple[bytes, bytes | None]) -> None:
        self.refused, self._come = list[str](), records
        topic: Any = SimpleNamespace(to_the_end=lambda: self._come, poll=lambda seconds: self._come)
        self.leadership = Leadership(topic, 15.0, {"home"}, lambda: NOW_MS, self.refused.append)

    def reads(self, *records: tuple[bytes, bytes | None]) -> None:
        self._come = records
        self.leadership.follow()


@pytest.mark.parametrize(
    ("forged", "reasons"),
    [
        (claims(MOST), ["ahead"]), (claims(MOST, "other"), ["cluster"]), (claims(NOW_MS + 5, "other"), ["cluster"]),
        ((b"home", b"nonsense"), ["json"]), ((b"", None), []),
    ],
)  # fmt: skip
def test_no_record_of_a_stranger_stops_the_pipeline(forged: tuple[bytes, bytes | None], reasons: list[str]) -> None:
    """The record comes before the pipeline starts or while it runs; the pipeline leads, with runs that readers take."""
    before, running = World(forged), World()
    assert before.leadership.run == NOW_MS
    running.reads(forged)
    assert running.leadership.role() == (False, NOW_MS)
    for each in (before, running):
        assert encode(ClusterRecord("home", each.leadership.run, 0, NOW))
        assert each.refused == reasons


def test_a_restart_takes_a_higher_run_though_its_clock_was_put_back() -> None:
    assert World(claims(NOW_MS + 60_000)).leadership.run == NOW_MS + 60_001
