"""Three brokers: one broker's disk slows and stops producers on all, and an unknown state never counts as healthy."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource
from jsonschema import Draft7Validator

from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import (
    alter_broker_config,
    create_topic,
    delete_topics,
    place_topics,
    reassign,
    unregister_broker,
)
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX
from harness.system.waiting import eventually
from quotahost.records import snapshot as snapshot_records
from tests.broker.support.commands import explain_client
from tests.broker.support.node import changed, cluster_with_fence
from tests.broker.support.numbers import appended, attempt, begun, end_offset, records, settled_ends
from tests.broker.support.pipeline import RECORD_SOURCE, SNAPSHOT_SOURCE, FakePipeline, wait_for_source
from tests.broker.support.pipeline import TOPIC as RECORDS
from tests.broker.support.seen import ANYONE, OPEN, PAUSE, causes, gauge, silent_for, state, transitions, wait_for_state
from tests.broker.support.volumes import SNAPSHOTS as TOPIC

HARD: Final = PREFIX + "static.storage.hard"
OVERRIDES: Final = PREFIX + "static.storage.overrides"
STRICT: Final = PREFIX + "fenced.brokers"
NEVER: Final = 10**15  # bytes used
FLOOD: Final = 5_000  # hostile records of each kind
VALIDITY: Final = 8  # seconds
SETTINGS: Final = {
    "factor.source": "snapshots",
    "validity": f"{VALIDITY}s",
    "startup.grace": "20s",
    "snapshots.period": "1s",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_with_fence(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        wait_for_state(made, OPEN)
        yield made


@pytest.fixture(autouse=True)
def _whole_and_open(cluster: Cluster) -> Iterator[None]:
    yield
    for node in cluster.brokers:
        if not node.running:
            node.start()
    alter_broker_config(cluster.brokers[0], {HARD: None, OVERRIDES: None}, broker=1)
    wait_for_state(cluster, OPEN)


def disk_of_broker_1_is_full(cluster: Cluster) -> None:
    """Sets the hard limit of broker 1 below the bytes used, so all brokers take its disk for full."""
    alter_broker_config(cluster.brokers[0], {HARD: "1"}, broker=1)
    wait_for_state(cluster, PAUSE)


@pytest.mark.proves("proposal-035.volume-limits", "faults.transactions")
def test_a_limit_of_one_volume_stops_producers_everywhere_also_past_an_open_transaction(cluster: Cluster) -> None:
    first = cluster.brokers[0]
    open_on_the_topic = begun(first.client_config(client_id="quotahost-0"), TOPIC)
    alter_broker_config(first, {OVERRIDES: f"{first.data_dirs[0]} hard=1"}, broker=1)
    eventually(lambda: all(state(node) == PAUSE and "broker 1, volume" in causes(node) for node in cluster.brokers))
    alter_broker_config(first, {OVERRIDES: f"{first.data_dirs[0]} hard.min-free-bytes=1"}, broker=1)
    wait_for_state(cluster, OPEN)
    open_on_the_topic.abort_transaction(60)


@pytest.mark.proves("proposal-035.pause", "proposal-035.states", "proposal-035.metrics-store", "mission.volumes")
@pytest.mark.proves("faults.full-disk", "faults.pipeline-silent")
def test_a_full_disk_stops_producers_on_all_brokers_by_the_record_and_without_it_the_standby(cluster: Cluster) -> None:
    first = cluster.brokers[0]
    with (
        changed(first, {"factor.source": RECORD_SOURCE}),
        ProducerLoad(cluster.client_config(client_id="p"), "t", rate=1e6) as load,
    ):
        wait_for_source(cluster, SNAPSHOT_SOURCE)  # there is no topic of records yet
        wait_for_state(cluster, OPEN)
        create_topic(first, RECORDS, replicas=3, config={"cleanup.policy": "compact"})
        eventually(lambda: load.meter.bytes > 1_000_000)
        with FakePipeline(cluster, VALIDITY):
            wait_for_source(cluster, RECORD_SOURCE)
            disk_of_broker_1_is_full(cluster)
            ends, before = settled_ends(cluster), transitions(*cluster.brokers)
        wait_for_source(cluster, SNAPSHOT_SOURCE)
        keep_reading(cluster, SNAPSHOT_SOURCE)
        explained = explain_client(cluster.brokers[1], ANYONE, "p")[1]
        assert f"{SNAPSHOT_SOURCE} answers as the standby, since no record reaches {RECORD_SOURCE}" in explained
        with FakePipeline(cluster, VALIDITY):
            wait_for_source(cluster, RECORD_SOURCE)
            keep_reading(cluster, RECORD_SOURCE)
            eventually(lambda: all(gauge(node, "ClusterRecord", "Age") < VALIDITY for node in cluster.brokers))
        assert transitions(*cluster.brokers) == before, "no broker's state has changed, not even for a moment"
        assert appended(cluster) == ends
        for partition in range(3):
            assert attempt(cluster.client_config(client_id="q"), "t", partition) == "NOT_ENOUGH_REPLICAS"
        alter_broker_config(first, {HARD: None}, broker=1)
        eventually(lambda: all(now > was for now, was in zip(appended(cluster), ends, strict=True)))
        assert load.drain() == 0
    assert load.errors == [], "no record is lost"
    silent = f"no record of this cluster in {RECORDS} within validity (8 s): factor source {SNAPSHOT_SOURCE} answers"
    for node in cluster.brokers:
        log = node.log_text()
        assert "broker 1, volume" in log.rsplit("OPEN -> PAUSE", 1)[1].splitlines()[0]
        assert silent in log
        assert f"factor source {RECORD_SOURCE} answers again" in log


def keep_reading(cluster: Cluster, source: str) -> None:
    """Waits until the source has been read several times."""
    end = time.monotonic() + 2
    eventually(lambda: time.monotonic() > end)
    wait_for_source(cluster, source)


def test_a_topic_is_held_while_a_replica_is_on_the_full_disk_wherever_its_leader_goes(cluster: Cluster) -> None:
    first, second, third = cluster.brokers
    place_topics(cluster, {"moved": 2, "stays": 2})

    def held(topic: str) -> bool:
        return attempt(cluster.client_config(client_id="mover"), topic) == "NOT_ENOUGH_REPLICAS"

    # Only the disk of broker 1 ever gets full.
    with changed(first, {"factor.scope": "topics", "static.storage.hard": str(NEVER)}):
        disk_of_broker_1_is_full(cluster)
        # All topics are held until broker 1 has published the topics of its disk, which is full by the new limits.
        eventually(lambda: not held("moved"), what="the topic is free, since the full disk has no replica of it")
        reassign(cluster, "moved", [2, 1])
        eventually(lambda: held("moved"), what="the topic is held, since the full disk has a new replica of it")
        affected = "QuotaTable", "AffectedTopics"
        eventually(lambda: len({gauge(node, *affected) for node in cluster.brokers}) == 1, what="all brokers agree")
        before = end_offset(second, "moved")
        reassign(cluster, "moved", [3, 1])
        assert held("moved"), "the new leader holds the topic, too"
        reassign(cluster, "moved", [1, 3])
        assert held("moved"), "the broker with the full disk holds the topic, too"
        assert end_offset(third, "moved") == before
        reassign(cluster, "moved", [3, 2])
        eventually(lambda: not held("moved"), what="the topic is free, since the full disk has no replica any more")
        eventually(lambda: not held("stays"))
        assert {state(node) for node in cluster.brokers} == {PAUSE}
        eventually(lambda: "broker 1, volume" in causes(first))


def latest_records(node: KafkaNode) -> dict[str, tuple[bytes, bytes]]:
    """The key and value of the topic's latest record, by broker."""
    return {key.decode(errors="replace"): (key, value) for key, value in records(node, TOPIC)}


@pytest.mark.proves("proposal-035.topic", "proposal-035.snapshot")
def test_snapshots_are_records_of_the_proposals_schema_in_a_compacted_topic_of_three_replicas(cluster: Cluster) -> None:
    node = cluster.brokers[0]
    schema = json.loads((Path(snapshot_records.__file__).parent / "schemas/snapshot.json").read_text())
    eventually(lambda: set(latest_records(node)) == {"1", "2", "3"})
    for broker, (key, value) in latest_records(node).items():
        snapshot = json.loads(value)
        Draft7Validator(schema).validate(snapshot)
        assert snapshot["brokerId"] == broker == key.decode()
    admin = AdminClient(node.client_config(client_id="harness"))
    assert len(admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions[0].replicas) == 3
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    assert admin.describe_configs([resource])[resource].result(30)["cleanup.policy"].value == "compact"


@pytest.mark.proves("proposal-035.fallback", "proposal-035.freshness", "proposal-035.active-brokers")
@pytest.mark.proves("proposal-035.metric-no-data", "faults.killed-broker", "faults.rolling")
def test_a_broker_that_is_down_for_longer_than_validity_stops_nobody_but_in_the_strict_form(cluster: Cluster) -> None:
    first, second, third = cluster.brokers
    create_topic(first, "replicated", partitions=3, replicas=3)
    before = transitions(first, second)
    with ProducerLoad(cluster.client_config(client_id="p"), "replicated", rate=1e6) as load:
        third.stop()
        silent_for(first, third, VALIDITY + 2)
        produced = load.meter.bytes
        eventually(lambda: load.meter.bytes > produced + 1_000_000)
    assert transitions(first, second) == before, "no broker's state has changed, not even for a moment"
    eventually(lambda: (gauge(first, "Brokers", "LastKnown"), gauge(first, "Brokers", "Stale")) == (1, 0))
    start = first.log.end()
    alter_broker_config(first, {STRICT: "unknown"})
    wait_for_state(cluster, PAUSE, but=third)
    eventually(lambda: (gauge(first, "Factor", "LackOfData"), gauge(first, "Factor", "Unknown")) == (1, 1))
    first.wait_for_log("-> PAUSE: .*broker 3: its latest snapshot is older", start=start)
    alter_broker_config(first, {STRICT: None})
    wait_for_state(cluster, OPEN, but=third)
    eventually(lambda: (gauge(first, "Factor", "LackOfData"), gauge(first, "Factor", "Unknown")) == (0, 0))
    before = transitions(first, second)
    third.start()
    eventually(lambda: gauge(first, "Brokers", "LastKnown") == 0)
    wait_for_state(cluster, OPEN)
    assert transitions(first, second) == before, "the broker's return has changed no state, either"


@pytest.mark.proves("proposal-035.active-brokers", "proposal-035.quick-start", "faults.killed-broker")
@pytest.mark.long
def test_a_disk_that_was_full_when_its_broker_died_stays_full_until_it_is_unregistered(cluster: Cluster) -> None:
    first, second, third = cluster.brokers
    alter_broker_config(first, {HARD: "1"}, broker=3)
    wait_for_state(cluster, PAUSE)
    before = transitions(first)
    third.stop()
    silent_for(first, third, VALIDITY + 2)
    second.stop()
    second.start()
    wait_for_state(cluster, PAUSE, but=third)
    eventually(lambda: "broker 3, volume" in causes(second))
    assert transitions(first) == before
    unregister_broker(first, 3)
    wait_for_state(cluster, OPEN, but=third)
    third.start()
    alter_broker_config(first, {HARD: None}, broker=3)


@pytest.mark.proves("proposal-035.quick-start", "faults.full-at-start")
def test_a_broker_that_restarts_in_a_pause_appends_nothing(cluster: Cluster) -> None:
    second = cluster.brokers[1]
    disk_of_broker_1_is_full(cluster)
    before = appended(cluster)
    # The producer spreads records over all partitions, because its queue is soon full, and reconnects quickly.
    own = {"sticky.partitioning.linger.ms": 0, "reconnect.backoff.max.ms": 500}
    with ProducerLoad(cluster.client_config(client_id="p") | own, "t") as load:
        second.stop()
        second.start()
        rejected = gauge(second, "Fence", "Rejections")
        eventually(lambda: gauge(second, "Fence", "Rejections") > rejected)
        assert appended(cluster) == before
        assert load.meter.bytes == 0
        # By now the fence is closed because of the topic's records, and no longer by the fallback of a starting broker.
        eventually(lambda: "broker 1, volume" in causes(second) and gauge(second, "Factor", "LackOfData") == 0)
        assert state(second) == PAUSE
        assert appended(cluster) == before


# This test is the last but one, because FakePipeline reads the whole topic and expects each record to be valid.
@pytest.mark.proves("faults.hostile-record")
def test_hostile_records_are_refused_and_counted_and_change_no_state(cluster: Cluster) -> None:
    node = cluster.brokers[0]
    good = latest_records(node)["1"][1]
    unknown = good.replace(b'"schemaVersion":1', b'"schemaVersion":99')
    refused = {"json": b"{", "schema": b"{}", "key": good, "version": unknown, "size": b"x" * 300_000}
    before = refused_records(node, "stranger")  # other tests write as brokers that don't exist, too
    silences = [gauge(each, "Lease", "FallbackApplied") for each in cluster.brokers]
    # The producer is idempotent, so a record that it retries counts once.
    own = {"queue.buffering.max.messages": 200_000, "enable.idempotence": True}
    producer = Producer(node.client_config(client_id="hostile") | own)
    for number in range(FLOOD):
        for reason in ("json", "schema", "key"):
            producer.produce(TOPIC, key="2", value=refused[reason])
        producer.produce(TOPIC, key="1", value=refused["version"])
        producer.produce(TOPIC, key=f"ghost-{number}", value=good.replace(b'"1"', f'"ghost-{number}"'.encode()))
        producer.poll(0)
    producer.produce(TOPIC, key="1", value=refused["size"])
    assert producer.flush(120) == 0

    counted = {"json": FLOOD, "stranger": before + FLOOD}
    eventually(lambda: {reason: refused_records(node, reason) for reason in counted} == counted)
    eventually(lambda: all(refused_records(node, reason) > 0 for reason in refused))
    wait_for_state(cluster, OPEN)
    eventually(lambda: gauge(node, "Brokers", "Missing") == 0)
    assert [gauge(each, "Lease", "FallbackApplied") for each in cluster.brokers] == silences
    disk_of_broker_1_is_full(cluster)


# This test is the last, because a reader may need some seconds to notice its new topic, and counts nothing meanwhile.
@pytest.mark.proves("faults.topic-deleted")
def test_a_deleted_topic_is_made_again_and_protection_goes_on(cluster: Cluster) -> None:
    admin = AdminClient(cluster.client_config(client_id="harness"))
    delete_topics(cluster, TOPIC, timeout=60)
    eventually(lambda: TOPIC in admin.list_topics(timeout=30).topics)
    eventually(lambda: set(latest_records(cluster.brokers[0])) == {"1", "2", "3"})
    wait_for_state(cluster, OPEN)
    disk_of_broker_1_is_full(cluster)


def refused_records(node: KafkaNode, reason: str) -> float:
    found = Jmx(node).query("quotahost:type=Refused,*")
    return next((bean["Records"] for name, bean in found.items() if f"name={reason}" in name), 0.0)
