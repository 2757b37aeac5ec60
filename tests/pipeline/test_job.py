"""The pipeline runs in this process, on a real broker: it makes records and dead letters from snapshots and silence."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.kafka.admin import alter_config, create_topic, delete_topics, kafka_configs
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from quotahost.model import QuotaType
from quotahost.pipeline.job import Job
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options
from quotahost.records import shares
from quotahost.records.cluster_volumes import ClusterRecord, encode
from quotahost.records.topics import COMPACTED, SHARES, TICKS, USAGE
from quotahost.records.usage import ClientKey, Used
from tests.pipeline.records import limit, snapshot, volume
from tests.pipeline.topics import CLUSTER_VOLUMES, SNAPSHOTS, Snapshots, dead_letters, latest, published, read_all

PATIENCE = 240.0  # seconds: a cold Spark on a busy machine
PERIOD = 2.0  # seconds between two snapshots of a broker; each costs a batch


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    # Operators also set the first. Otherwise the broker itself would create a deleted topic again, with its defaults.
    properties = {"auto.create.topics.enable": "false", "log.cleaner.backoff.ms": "100"}
    with KafkaNode(tmp_path_factory.mktemp("node"), properties=properties) as node:
        yield node


class Running:
    def __init__(self, spark: SparkSession, node: KafkaNode, directory: Path) -> None:
        self.node, self.bootstrap, self.progress = node, node.bootstrap, Progress()
        self.directory, self.brokers = directory, Snapshots(node.bootstrap)
        options = Options(
            bootstrap=node.bootstrap, checkpoint=str(directory / "checkpoint"), tick="1s", interval="2s",
            validity="15s", history=str(directory / "history"),
        )  # fmt: skip
        self._stop = threading.Event()
        self._job = Job(spark, options, self.progress)
        self._thread = threading.Thread(target=self._job.run, args=(self._stop,))
        self._thread.start()

    def metric(self, name: str, **labels: str) -> float | None:
        return self.progress.registry.get_sample_value(f"quotahost_pipeline_{name}", labels)

    def latest_with(self, **expected: object) -> ClusterRecord | None:
        found = latest(self.bootstrap)
        matches = found is not None and all(getattr(found, name) == value for name, value in expected.items())
        return found if matches else None

    def told(self, *snapshots: Callable[[], object], **expected: object) -> ClusterRecord:
        """Publish repeatedly, as brokers do, until the latest record is as expected."""

        def told() -> ClusterRecord | None:
            for publish in snapshots:
                publish()
            self.brokers.flush()
            return self.latest_with(**expected)

        # A cold Spark takes longer than validity.
        return eventually(told, PATIENCE, poll=PERIOD)

    def tells(self, broker: str, capacity: int, consumed: int, **more: object) -> Callable[[], None]:
        return lambda: self.brokers.publish(broker, [volume("/a", capacity, consumed)], **more)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def running(spark: SparkSession, node: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with closing(Running(spark, node, tmp_path_factory.mktemp("pipeline"))) as running:
        # The first batches of the other queries take long; they run while the tests wait for something else.
        running.brokers.use("1")
        running.brokers.write("7", b"{nonsense")
        running.brokers.publish("8", [volume("/a", -1, 0)])
        running.brokers.flush()
        yield running


@pytest.mark.proves("mission.spark")
def test_snapshots_become_one_record_and_silence_makes_a_broker_stale(running: Running) -> None:
    limits = {"softLimit": limit("MinFreePercentage", 20), "hardLimit": limit("MinFreePercentage", 10)}
    # Broker 1 is the node itself. A broker that the cluster doesn't list doesn't count as reporting.
    one, two = running.tells("1", 1000, 950, offlineLogDirs=["/b"], **limits), running.tells("2", 1000, 100)
    found = running.told(one, two, reporting=1, volume_count=2)
    assert (found.consumed, found.capacity, found.missing) == (1050, 2000, 0)
    assert found.smallest_factor == 0.0
    assert [each.log_dir for each in found.offline_dirs] == ["/b"]
    running.told(two, reporting=0, stale=1, stale_brokers=("1",))
    running.brokers.remove("1")
    running.told(two, stale=0, missing_brokers=("1",))


@pytest.mark.proves("faults.hostile-record")
def test_a_refused_record_becomes_a_dead_letter_and_the_stream_goes_on(running: Running) -> None:
    """The fixture ``running`` writes the two bad records; the snapshots of all other tests come later."""
    eventually(lambda: len(dead_letters(running.bootstrap)) >= 2, PATIENCE)
    found = {each["key"]: each for each in dead_letters(running.bootstrap)}
    assert found["7"]["reason"] == "json"
    assert found["7"]["value"] == "{nonsense"
    assert found["8"]["reason"] == "schema"
    for each in found.values():
        assert each["id"] == f"{SNAPSHOTS}-{each['partition']}-{each['offset']}"
        assert each["topic"] == SNAPSHOTS
    eventually(lambda: running.metric("refused_total") == 2, PATIENCE)


@pytest.mark.proves("faults.hostile-record")
def test_whoever_may_write_to_the_topics_stops_no_pipeline_and_speaks_for_no_other_cluster(running: Running) -> None:
    """Forged records: a run that no other can follow, other clusters, a null directory, a long key, a clock at 1970."""
    brokers, own = running.brokers, latest(running.bootstrap)
    assert own is not None
    brokers.write(own.cluster, encode(replace(own, run=2**63 - 1, sequence=0)), CLUSTER_VOLUMES)
    for number in range(20):
        brokers.publish(f"{number}", [volume("/a", 100, 100)], clusterId=f"invented-{number}")
    brokers.publish("5", [volume("/a", 100, 100)], offlineLogDirs=[None])
    brokers.write("6" * 2000, None)
    brokers.flush()

    def goes_on() -> bool:
        brokers.publish("9", [volume("/a", 55, 5)])
        brokers.publish("4", [volume("/a", 33, 3)], snapshotAt="1970-01-01T00:00:00Z")
        brokers.flush()
        records = [each for each in published(running.bootstrap) if each.run == own.run]
        return records[-1].capacity in (55, 88)

    eventually(goes_on, PATIENCE, poll=PERIOD)
    assert {each.cluster for each in published(running.bootstrap)} == {own.cluster}
    eventually(lambda: running.metric("refused_runs_total", reason="ahead") == 1, PATIENCE)
    assert running.metric("standing_by") == 0

    def letters() -> list[str]:
        return [each["reason"] for each in dead_letters(running.bootstrap)][-22:]

    eventually(lambda: letters() == [*["cluster"] * 20, "schema", "key"], PATIENCE)


@pytest.mark.proves("faults.clock")
def test_a_snapshot_that_a_leader_dates_ahead_hides_none_of_those_that_come_later(running: Running) -> None:
    """A leader's clock is half an hour ahead for a moment; with CreateTime the test itself sets this timestamp."""

    def dated(capacity: int, ahead: float) -> None:
        value = snapshot("1", datetime.now(UTC), [volume("/a", capacity, 1)], ageMs=0)
        running.brokers.write("1", value, dated=ahead)

    alter_config(running.node, "TOPIC", SNAPSHOTS, {"message.timestamp.type": "CreateTime"})
    try:
        running.told(lambda: dated(44, 1800), reporting=1, capacity=44)
        running.told(lambda: dated(45, 0), reporting=1, capacity=45)
        # A leader's clock is half an hour behind: the others' snapshots don't hide its own.
        running.told(lambda: dated(46, -1800), reporting=1, capacity=46)
    finally:
        alter_config(running.node, "TOPIC", SNAPSHOTS, {"message.timestamp.type": "LogAppendTime"})


def test_usage_becomes_shares_batch_after_batch(running: Running) -> None:
    """The first batch had the usage that the fixture ``running`` writes."""
    own = latest(running.bootstrap)
    assert own is not None
    used = Used("alice", "app", QuotaType.PRODUCE, 1.0, None, 1e6)

    def shared() -> list[tuple[ClientKey, float]]:
        """Publishes usage of broker 1, the node itself, as brokers do; returns the shares of its latest record."""
        running.brokers.use("1", used, cluster=own.cluster)
        found = [shares.decode(each.key(), each.value() or b"") for each in read_all(running.bootstrap, SHARES.name)]
        return [(each.key, round(each.share)) for each in found[-1].clients] if found else []

    eventually(lambda: shared() == [(used.key, 1e6)], PATIENCE, poll=PERIOD)


def test_the_parts_of_the_history_are_written_side_by_side(running: Running) -> None:
    for query in ("history", "usage", "budgets"):
        folder = "history" if query == "history" else f"history-{query}"
        eventually(lambda query=query: running.metric("batches_total", query=query), PATIENCE, query, poll=1)
        assert (running.directory / folder / "_checkpoint").is_dir()
        assert not running.metric("failures_total", query=query)


def test_kafka_compacts_no_record_that_the_history_has_not_read_yet(running: Running) -> None:
    """Otherwise a bill would lack the bytes of the usage records that came since the history's last look."""
    usage, soon = USAGE.name, {"segment.ms": "100"}
    alter_config(running.node, "TOPIC", usage, soon)

    def compacted(topic: str) -> bool:
        """Whether the topic lacks records; each call also writes one, always with the same key."""
        running.brokers.write("1", b"{", topic)
        running.brokers.flush()
        offsets = [each.offset() or 0 for each in read_all(running.bootstrap, topic)]
        return len(offsets) <= offsets[-1]

    for other in ("__quotahost_one", "__quotahost_other"):  # Kafka cleans the topics one after another
        create_topic(running.node, other, config=COMPACTED | soon)
        eventually(lambda other=other: (compacted(usage), compacted(other))[1], PATIENCE, poll=0.2)
    assert not compacted(usage)


@pytest.mark.proves("faults.topic-deleted")
def test_time_goes_on_also_when_somebody_deletes_the_topic_of_ticks(running: Running) -> None:
    """If there were no ticks, a broker that dies together with all others would stay fresh for ever."""
    delete_topics(running.node, TICKS.name)
    # This snapshot comes after the deletion, so earlier ticks can't make the broker stale.
    running.told(running.tells("1", 66, 7), reporting=1, consumed=7)
    eventually(lambda: running.latest_with(reporting=0), PATIENCE)
    settings = ("--describe", "--entity-type", "topics", "--entity-name", TICKS.name)
    eventually(lambda: "retention.ms=600000" in kafka_configs(running.node, *settings), PATIENCE, poll=1)
