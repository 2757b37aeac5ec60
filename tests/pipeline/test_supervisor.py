"""The supervisor handles queries that fail, lose their place or keep too much state, and shows their metrics."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from harness.system.waiting import eventually
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.session import close_idle_callbacks
from quotahost.pipeline.supervisor import ATTEMPTS, Supervisor, set_checkpoint_aside


class Query:
    """A streaming query whose progress and end a test sets."""

    def __init__(self, checkpoint: int) -> None:
        self.isActive, self.lastProgress, self.recentProgress = True, None, list[Any]()
        self.id = str(checkpoint)
        self.disk = threading.Event()  # while it isn't set, the checkpoint's disk hangs
        self.disk.set()
        self.fault = ""

    def exception(self) -> str:
        fault = self.fault.replace("#", str(id(self)))
        return f"QuotahostError: Task 0 in stage {id(self)}.0 failed; root cause: {fault}\n\tat Spark"

    def stop(self) -> None:
        self.disk.wait()

    def report(self, batch: int, end: int = 5, latest: int | None = 5) -> None:
        # Spark gives offsets as JSON, decoded or not.
        at_end = json.dumps(None if latest is None else {"ticks": {"0": latest}})
        self.lastProgress = {  # type: ignore[assignment]
            "batchId": batch,
            "numInputRows": 1,
            "durationMs": {"addBatch": 1, "triggerExecution": 1},
            "sources": [{"endOffset": {"ticks": {"0": end}}, "latestOffset": at_end}],
            "stateOperators": [{"numRowsTotal": 1, "memoryUsedBytes": 1}],
            "observedMetrics": {},
        }
        self.recentProgress.append(self.lastProgress)


class World:
    def __init__(self) -> None:
        self.now, self.progress = 100.0, Progress()
        self.started: dict[str, list[Query]] = {}
        self.aside: list[str] = []
        self.checkpoint = 0  # the number of the checkpoint
        self.refuses, self.given = False, 0
        self.supervisor = Supervisor(self.progress, self._set_aside, lambda: self.now)
        self.add("volumes")

    def add(self, name: str, checkpoint: str = "") -> None:
        started = self.started[name] = []

        def start() -> Any:
            started.append(Query(self.checkpoint))
            return started[-1]

        self.supervisor.add(name, start, checkpoint)

    def _set_aside(self, name: str) -> str:
        if self.refuses:
            raise OSError("the file system is read-only")
        self.aside.append(name)
        self.checkpoint += 1
        return f"/c/{name}.set-aside-1"

    @property
    def query(self) -> Query:
        return self.started["volumes"][-1]

    def look(self, kafka_answers: bool = True) -> None:
        """Lets the supervisor look after a time that is longer than any of its pauses."""
        for _ in range(4):
            self.now += 8
            if kafka_answers:
                self.supervisor.kafka_answers()
        self.supervisor.look(self.given)

    def fail(self, times: int, name: str = "volumes", kafka_answers: bool = True, fault: str = "none at #") -> None:
        for _ in range(times):
            self.started[name][-1].isActive, self.started[name][-1].fault = False, fault
            self.look(kafka_answers)  # notices the end
            self.look(kafka_answers)  # starts the query again

    def reports(self, batch: int, end: int = 5, latest: int | None = 5) -> None:
        self.query.report(batch, end, latest)
        self.look()


@pytest.fixture
def world() -> World:
    made = World()
    made.look()
    return made


def metric(world: World, name: str) -> float | None:
    """A metric of the query of the volumes."""
    return world.progress.registry.get_sample_value(f"quotahost_pipeline_{name}", {"query": "volumes"})


def test_each_batch_is_counted_once_also_between_two_looks_and_after_one_that_found_nothing(world: World) -> None:
    for batch in (0, 0, 1):
        world.reports(batch)
    for batch in (2, 3, 4):
        world.query.report(batch)
    world.look()
    assert metric(world, "batches_total") == 5
    world.query.report(5)
    world.query.lastProgress["durationMs"] = {"latestOffset": 3}  # type: ignore[index]
    world.look()
    world.reports(5, 6, 6)
    assert metric(world, "batches_total") == 6


def test_batches_are_counted_on_after_somebody_has_moved_the_checkpoint_away(world: World) -> None:
    """The log tells operators to move the history's checkpoint. Then Spark counts from 0."""
    world.reports(700)
    world.fail(1)
    world.reports(700)  # repeated from the same checkpoint
    world.checkpoint += 1
    world.fail(1)
    world.reports(0)
    assert metric(world, "batches_total") == 2


def test_records_that_are_not_read_yet_are_shown_and_a_batch_done_again_ends_no_backlog(world: World) -> None:
    """With a batch that is done again Spark reports no end of the topics. It reports an empty topic's end as 0."""
    given = [(5, None, 0, False), (5, 8, 3, False), (8, 8, 0, True), (0, 0, 0, True)]
    for batch, (end, latest, behind, caught_up) in enumerate(given):
        world.reports(batch, end, latest)
        assert (metric(world, "records_behind"), world.supervisor.caught_up()) == (behind, caught_up)


def test_the_others_wait_until_the_volumes_have_read_a_backlog(world: World) -> None:
    world.add("refused")
    world.reports(0, 5, 8)
    assert world.started["refused"] == []
    world.reports(1, 8, 8)
    assert len(world.started["refused"]) == 1


def test_what_fails_again_keeps_its_checkpoint_until_a_batch(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.reports(7)
    world.fail(ATTEMPTS - 1)
    assert world.aside == []
    world.fail(3 * ATTEMPTS)
    assert world.aside == ["volumes"]
    assert caplog.text.count("query volumes failed and ") == caplog.text.count("query volumes keeps failing") == 1
    world.reports(0)
    assert metric(world, "batches_total") == 2
    world.fail(ATTEMPTS)
    assert world.aside == ["volumes", "volumes"]


def test_a_checkpoint_that_can_not_be_set_aside_is_told_once_and_is_so_with_a_later_failure(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.refuses = True
    world.fail(3 * ATTEMPTS)
    assert caplog.text.count("the checkpoint of query volumes can't be set aside: OSError") == 1
    world.refuses = False
    world.fail(1)
    assert world.aside == ["volumes"]


def test_failures_with_batches_in_between_or_while_kafka_does_not_answer_set_nothing_aside(world: World) -> None:
    for batch in range(3 * ATTEMPTS):
        world.reports(batch)
        world.fail(1)
    world.fail(3 * ATTEMPTS, kafka_answers=False)
    world.query.isActive = False
    world.supervisor.look(world.given)
    world.supervisor.kafka_answers()
    world.supervisor.look(world.given)
    assert world.query.isActive, "the query starts immediately once Kafka answers again"
    world.fail(1)
    assert world.aside == [], "failures from before Kafka's answer don't count"


def test_of_the_checkpoints_set_aside_the_latest_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    before = tmp_path / "volumes.set-aside-20260101T000000"
    before.mkdir()
    with pytest.raises((OSError, Py4JError)):
        set_checkpoint_aside(spark, str(tmp_path), "volumes")
    assert before.is_dir(), "the old checkpoint is kept if there is no other"
    (tmp_path / "volumes").mkdir()
    assert set_checkpoint_aside(spark, str(tmp_path), "volumes") == str(*tmp_path.iterdir())


def test_ended_queries_leave_no_threads_in_which_they_called_python(spark: SparkSession) -> None:
    """On a history's disk that is full for a night, three queries are started again each 30 s."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    for _ in range(3):
        rows.writeStream.foreachBatch(lambda *_: None).trigger(availableNow=True).start().awaitTermination()
    left = threading.active_count()
    eventually(lambda: (close_idle_callbacks(spark), threading.active_count() <= left - 3)[1])


def test_a_disk_that_hangs_under_one_query_holds_up_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise no record of the volumes would be published if the history's disk hangs when a broker is added."""
    world.add("history", "/h/history")
    world.add("refused")
    world.reports(0)
    hung = world.started["history"][-1].disk
    hung.clear()
    for again in (2, 3):
        world.given = again
        world.look()
        world.look()
        assert [len(started) for started in world.started.values()] == [again, 1, again]
    assert caplog.text.count("query history hangs until its disk and Kafka answer") == 1
    hung.set()
    eventually(lambda: (world.look(), len(world.started["history"]))[1] == 3)
    assert [len(started) for started in world.started.values()] == [3, 3, 3]


def test_a_full_disk_costs_no_checkpoint_and_the_history_keeps_its_own_whatever_fails(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A new checkpoint has no more room than the old one, which is good as soon as there is space."""
    world.add("history", "/h/history")
    world.add("shares")
    world.reports(0)
    world.fail(ATTEMPTS - 1, "history")
    assert "keeps failing" not in caplog.text
    full, read_only = "java.io.IOException: No space left on device", "#.tmp (Read-only file system)"
    for name, fault in {"volumes": full, "shares": "Disk quota exceeded", "history": read_only}.items():
        caplog.clear()
        world.fail(3 * ATTEMPTS, name, fault=fault)
        assert caplog.text.count("failed and is started again: ") == 1
        assert caplog.text.count(f"query {name} keeps failing; its disk is full or read-only: ") == 1
    world.fail(2 * ATTEMPTS, "history")
    assert world.aside == []
    says = "query history keeps failing; if the query can't read its checkpoint, move /h/history away"
    assert caplog.text.count(says) == 1
