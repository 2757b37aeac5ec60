"""A PAUSE stops clients, but nothing that Kafka itself does: tiered storage, transactions, share groups."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import fill_topic
from harness.java.helper import helper
from harness.java.jars import DEFAULT_VERSION, maven_jar
from harness.kafka.admin import alter_broker_config, alter_config
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.properties import plain_jaas
from harness.kafka.settings import CLIENTS
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually
from quotahost.broker.disks.file_stores import read_disks
from quotahost.records.topics import TIERING
from tests.broker.support.node import PLUGINS, callback_node, topic_of
from tests.broker.support.numbers import attempt, begun, end_offset, values
from tests.broker.support.seen import ANYONE, OPEN, PAUSE, state
from tests.broker.support.volumes import MEGA

TURNED_BACK: Final = "NOT_ENOUGH_REPLICAS"
USERS: Final = {"broker": "b", "tiering": "t", "alice": "a"}
HARD: Final = "static.storage.hard"
# Kafka's own clients that these tests make a broker start; and the client-id prefixes of tests and harness.
KAFKAS: Final = ("AddPartitionsManager-client-1", "broker-1-txn-marker-sender", "Persister-client-1")
TESTS: Final = ("harness", "test-", "adminclient-")


def tiering_properties(remote: Path) -> dict[str, str]:
    """Broker properties that offload segments every half second, to a directory outside the broker's own disk."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "rsm.config.dir": str(remote),
        "remote.log.metadata.manager.listener.name": CLIENTS,
        "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "remote.log.manager.task.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "100",
    }


def segments(remote: Path) -> int:
    """The number of offloaded segments."""
    return len(list(remote.rglob("*.log")))


@pytest.fixture(scope="module", params=[DEFAULT_VERSION, pytest.param("4.0.1", marks=pytest.mark.long)])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker that offloads segments, on a file system of its own.

    Brokers authenticate, and tiered storage's client logs in as a user that no property exempts.
    """
    directory = tmp_path_factory.mktemp("node")
    settings = {"factor.source": "local", "supplier": "witness"}
    login = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": plain_jaas({"tiering": "t"}, "tiering")}
    client = "rlmm.config.remote.log.metadata.common.client."
    properties = QUICK_QUOTAS | FENCE | {"share.coordinator.state.topic.num.partitions": "2"}
    properties |= tiering_properties(tmp_path_factory.mktemp("remote"))
    properties |= {client + name: value for name, value in login.items()}
    env = {"PYTHONPATH": str(PLUGINS), "WITNESS": str(directory / "witness")}
    with own_file_system(directory):
        (directory / "witness").touch()
        more = {"env": env, "version": request.param, "users": USERS, "inter_broker_user": "broker"}
        node = callback_node(directory, settings, properties=properties, **more)
        node.classpath = [JAR, maven_jar(f"org.apache.kafka:kafka-storage:{node.version}:test")]  # LocalTieredStorage
        with node:
            eventually(lambda: TIERING in node.log_text())
            yield node


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    name = topic_of(node, request, **{"segment.bytes": str(1 << 20)})
    yield name
    limit(node, None)


def limit(node: KafkaNode, hard: int | None) -> None:
    """Sets the hard limit in bytes used, and waits for the state that follows."""
    alter_broker_config(node, {PREFIX + HARD: None if hard is None else str(hard)})
    eventually(lambda: state(node) == (OPEN if hard is None else PAUSE))


def test_a_pause_whose_only_way_out_is_that_segments_are_offloaded_ends_by_itself(node: KafkaNode, topic: str) -> None:
    fill_topic(node.client_config("alice", "test-filler"), topic, 20 * MEGA)
    (volume,) = read_disks("1", [str(node.data_dirs[0])]).volumes
    limit(node, volume.consumed - 5 * MEGA)
    remote = Path(node.properties["rsm.config.dir"])
    assert segments(remote) == 0
    assert attempt(node.client_config("alice", "test-stranger"), topic) == TURNED_BACK
    assert attempt(node.client_config(client_id="1"), topic) == TURNED_BACK, "a broker's client-id proves nothing"
    alter_config(node, "TOPIC", topic, {"remote.storage.enable": "true", "local.retention.bytes": "2000000"})
    eventually(lambda: state(node) == OPEN, what="Kafka deletes offloaded segments from the disk")
    assert segments(remote) > 4
    eventually(lambda: attempt(node.client_config("alice", "test-stranger"), topic) is None)
    assert len(values(node, topic)) == end_offset(node, topic), "offloaded segments can be read"


def test_transactions_end_and_share_groups_acknowledge_in_a_pause(node: KafkaNode, topic: str) -> None:
    producer = begun(node.client_config("alice", "test-tx"), topic)
    limit(node, 1)
    producer.commit_transaction(60)
    assert values(node, topic) == ["before"], "the transaction's marker was written"
    if node.version != DEFAULT_VERSION:  # share groups were not ready for use in 4.0
        return
    group = f"test-{topic}"
    alter_config(node, "GROUP", group, {"share.auto.offset.reset": "earliest"})
    reader = {"bootstrap.servers": node.bootstrap, "group.id": group, "client.id": "test-reader"}
    assert helper(node.version).ask("read-shared", topic, 1, reader) == ["before"]
    stored = sum(end_offset(node, "__share_group_state", partition) for partition in range(2))
    assert stored > 0, "the acknowledgement is stored"


def test_no_supplier_is_ever_asked_about_kafkas_own_clients(node: KafkaNode, topic: str) -> None:
    for client_id in KAFKAS if node.version == DEFAULT_VERSION else KAFKAS[:2]:
        assert quota_now(node, "broker", client_id, "REQUEST").supplier == "broker", f"{client_id} is exempt"
    asked = {tuple(line.split("\t")) for line in (node.directory / "witness").read_text().splitlines()}
    strangers = {(who, client_id) for who, client_id in asked if not client_id.startswith(TESTS)}
    # Two clients are no brokers: tiered storage's own user, and the unauthenticated one of the controllers' listener.
    others = {("tiering", f"{TIERING}_client_1_{what}") for what in ("admin", "consumer", "producer")}
    assert strangers - others - {(ANYONE, "1")} == set()
