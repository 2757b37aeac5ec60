"""The pipeline on a real broker, in this process: from snapshots, or silence, to records and dead letters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from quotahost.pipeline.job import Job
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options
from quotahost.records.cluster_volumes import ClusterRecord
from tests.pipeline.support.records import limit, volume
from tests.pipeline.support.topics import SNAPSHOTS, Snapshots, dead_letters, newest, published

pytestmark = pytest.mark.broker
PATIENCE = 120.0  # seconds


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path_factory.mktemp("node")) as node:
        yield node


class Running:
    def __init__(self, spark: SparkSession, node: KafkaNode, directory: Path) -> None:
        self.bootstrap, self.progress = node.bootstrap, Progress()
        options = Options(
            bootstrap=node.bootstrap, checkpoint=str(directory / "checkpoint"), tick="1s", validity="15s",
            history=str(directory / "history"),
        )  # fmt: skip
        self._stop = threading.Event()
        self._job = Job(spark, options, self.progress)
        self._thread = threading.Thread(target=self._job.run, args=(self._stop,))
        self._thread.start()

    def metric(self, name: str, **labels: str) -> float | None:
        return self.progress.registry.get_sample_value(f"quotahost_pipeline_{name}", labels)

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def running(spark: SparkSession, node: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(spark, node, tmp_path_factory.mktemp("pipeline"))
    yield running
    running.end()


def test_snapshots_become_one_record_and_silence_makes_a_broker_stale(running: Running) -> None:
    brokers = Snapshots(running.bootstrap)
    hard = limit("MinFreePercentage", 10)

    # Again and again, as brokers do: a cold Spark takes longer than validity.
    def report() -> ClusterRecord | None:
        brokers.publish("1", [volume("/a", 1000, 950)], softLimit=limit("MinFreePercentage", 20), hardLimit=hard)
        brokers.publish("2", [volume("/a", 1000, 100)], offlineLogDirs=["/b"])
        brokers.flush()
        return _with(running, reporting=2)

    found = eventually(report, PATIENCE, poll=1)
    assert (found.consumed, found.capacity, found.volume_count) == (1050, 2000, 2)
    assert found.smallest_factor == 0.0
    assert [each.log_dir for each in found.offline_dirs] == ["/b"]
    assert found.missing == 0  # broker 1 is the node itself

    def silent() -> bool:
        brokers.publish("2", [volume("/a", 1000, 100)])
        brokers.flush()
        found = _with(running, reporting=1, stale=1)
        return found is not None and found.stale_brokers == ("1",)

    eventually(silent, PATIENCE, poll=1)
    brokers.remove("1")
    brokers.flush()
    eventually(lambda: _with(running, stale=0), PATIENCE)
    last = eventually(lambda: _with(running, reporting=0, stale=1), PATIENCE)  # nothing comes any more: the tick
    assert last.stale_brokers == ("2",)
    assert last.missing_brokers == ("1",)


def _with(running: Running, **expected: int) -> ClusterRecord | None:
    found = newest(running.bootstrap)
    matches = found is not None and all(getattr(found, name) == value for name, value in expected.items())
    return found if matches else None


def test_a_refused_record_becomes_a_dead_letter_and_the_stream_goes_on(running: Running) -> None:
    brokers = Snapshots(running.bootstrap)
    brokers.write("7", b"{nonsense")
    brokers.publish("8", [volume("/a", -1, 0)])
    brokers.flush()
    eventually(lambda: len(dead_letters(running.bootstrap)) >= 2, PATIENCE)
    found = {each["key"]: each for each in dead_letters(running.bootstrap)}
    assert found["7"]["reason"] == "json"
    assert found["7"]["value"] == "{nonsense"
    assert found["8"]["reason"] == "schema"
    for each in found.values():
        assert each["id"] == f"{SNAPSHOTS}-{each['partition']}-{each['offset']}"
        assert each["topic"] == SNAPSHOTS

    def goes_on() -> bool:
        brokers.publish("9", [volume("/a", 77, 7)])
        brokers.flush()
        return any(each.capacity == 77 for each in published(running.bootstrap))

    eventually(goes_on, PATIENCE, poll=1)
    eventually(lambda: running.metric("refused_total") == 2, PATIENCE)


def test_records_only_ever_get_newer_and_the_metrics_show_them(running: Running) -> None:
    orders = [each.order for each in published(running.bootstrap)]
    assert orders == sorted(orders)
    assert len(set(orders)) == len(orders)
    eventually(lambda: _batches_before_the_last(running) < (running.metric("batches_total", query="volumes") or 0))
    assert (running.metric("state_rows", query="volumes") or 0) > 0


def _batches_before_the_last(running: Running) -> int:
    """A record's sequence is its batch's number, and the checkpoint is new."""
    found = newest(running.bootstrap)
    assert found is not None
    return found.sequence
