"""One broker and its own disk, with limits around what is used; test_volumes_that_fill.py fills one.

A PAUSE holds up clients, and nothing that Kafka itself does: tiered storage, transactions, share groups.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import fill_topic
from harness.java.helper import helper
from harness.java.jars import DEFAULT_VERSION, maven_jar
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, alter_config, create_topic, kafka_configs
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.kafka.properties import plain_jaas
from harness.kafka.settings import CLIENTS
from harness.plugin import FENCE, JAR, PREFIX, ROOT
from harness.system.filesystem import own_file_system
from harness.system.ports import free_port
from harness.system.waiting import eventually
from quotahost.broker.disks.file_stores import read_disks
from quotahost.model import Volume
from quotahost.records.topics import TIERING
from tests.broker.support.node import PLUGINS, callback_node, topic_name
from tests.broker.support.numbers import attempt, begun, end_offset, values
from tests.broker.support.seen import ANYONE, OPEN, PAUSE, THROTTLE, causes, gauge, scrape, state
from tests.broker.support.volumes import DiskLimits

SOFT, HARD = "static.storage.soft", "static.storage.hard"
SETTINGS: Final = {"factor.source": "local", "fence.authorizer": "none"}
TURNED_BACK: Final = "NOT_ENOUGH_REPLICAS"
USERS: Final = {"broker": "b", "tiering": "t", "alice": "a"}
# Kafka's clients inside a broker of which a test makes it start each; and those that tests and the harness start.
KAFKAS: Final = ("AddPartitionsManager-client-1", "broker-1-txn-marker-sender", "Persister-client-1")
TESTS: Final = ("harness", "test-", "adminclient-")


@pytest.fixture(scope="module", params=[DEFAULT_VERSION, pytest.param("4.0.1", marks=pytest.mark.long)])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker on a file system of its own, where one can be mounted, that is not empty.

    It offloads segments to another one every half second. Brokers authenticate, and tiered storage's client logs in as
    a user whom nothing exempts.
    """
    directory = tmp_path_factory.mktemp("node")
    settings = SETTINGS | {"supplier": "witness", "metrics.port": str(free_port())}
    metadata = "rlmm.config.remote.log.metadata."
    offloading = {
        "share.coordinator.state.topic.num.partitions": "2",
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "rsm.config.dir": str(tmp_path_factory.mktemp("remote")),
        "remote.log.metadata.manager.listener.name": CLIENTS,
        f"{metadata}topic.num.partitions": "2",
        f"{metadata}topic.replication.factor": "1",
        f"{metadata}topic.min.isr": "1",
        f"{metadata}common.client.sasl.mechanism": "PLAIN",
        f"{metadata}common.client.sasl.jaas.config": plain_jaas({"tiering": "t"}, "tiering"),
        "remote.log.manager.task.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "100",
    }
    env = {"PYTHONPATH": str(PLUGINS), "WITNESS": str(directory / "witness")}
    with own_file_system(directory):
        (directory / "witness").touch()
        (directory / "ballast").write_bytes(bytes(200_000_000))
        more = {"env": env, "version": request.param, "users": USERS, "inter_broker_user": "broker"}
        node = callback_node(directory, settings, properties=QUICK_QUOTAS | FENCE | offloading, **more)
        node.classpath = [JAR, maven_jar(f"org.apache.kafka:kafka-storage:{node.version}:test")]
        with node:
            eventually(lambda: TIERING in node.log_text())
            yield node


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    name = topic_name(request)
    create_topic(node, name, config={"segment.bytes": str(1 << 20)})
    yield name
    change(node, dict.fromkeys((SOFT, HARD, "factor.source")))
    eventually(lambda: state(node) == OPEN, what="open again")


def change(node: KafkaNode, properties: Mapping[str, str | None]) -> None:
    alter_broker_config(node, {PREFIX + name: value for name, value in properties.items()})


def pause(node: KafkaNode, hard: int) -> None:
    """Sets a hard limit below what is used, in bytes, and waits for the state that follows."""
    change(node, {HARD: str(hard)})
    eventually(lambda: state(node) == PAUSE)


def volume(node: KafkaNode) -> Volume:
    return read_disks("1", [str(node.data_dirs[0])]).volumes[0]


def set_limits_around_usage(node: KafkaNode) -> DiskLimits:
    """Sets limits around what is used, waits for THROTTLE, and returns the limits."""
    limits = DiskLimits.around(volume(node))
    change(node, {SOFT: str(limits.soft), HARD: str(limits.hard)})
    eventually(lambda: state(node) == THROTTLE)
    return limits


@pytest.mark.proves("proposal-035.policy-limits", "proposal-035.metric-volumes")
def test_the_limits_of_the_volume_are_shown_as_configured_in_bytes_used(node: KafkaNode, topic: str) -> None:
    limits, seen = set_limits_around_usage(node), volume(node)

    def shown() -> dict[str, float]:
        (found,) = Jmx(node).query("quotahost:type=VolumeLimits,*").values() or [{}]
        return found

    def scraped() -> dict[str, float]:
        """What the Prometheus endpoint shows of the volume, by metric."""
        return {each.name: each.value for each in scrape(node) if each.labels == {"volume": seen.name}}

    factor = pytest.approx(limits.factor(seen.consumed), abs=0.05)
    eventually(lambda: shown() == {"Soft": limits.soft, "Hard": limits.hard, "Breached": 1, "Factor": factor})
    expected = {"soft_limit_bytes": limits.soft, "hard_limit_bytes": limits.hard, "limit_breached": 1}
    expected["capacity_bytes"] = seen.capacity  # under the same label
    expected = {f"quotahost_volume_{name}": value for name, value in expected.items()}
    eventually(lambda: expected.items() <= scraped().items())
    change(node, {SOFT: None, HARD: None, f"{HARD}.min-free-percent": "0.0"})
    nothing = {"Soft": seen.capacity, "Hard": seen.capacity, "Breached": 0, "Factor": 1}
    eventually(lambda: shown() == nothing, what="0.0 of it must stay free")
    change(node, {f"{HARD}.min-free-percent": None})
    eventually(lambda: "Hard" not in shown(), what="no limit is left")


@pytest.mark.parametrize("source", ["log-dirs", "snapshots"])
def test_a_source_swapped_in_live_sees_the_same_disk(node: KafkaNode, topic: str, source: str) -> None:
    limits = set_limits_around_usage(node)
    change(node, {"factor.source": source})

    def has_factor() -> bool:
        return gauge(node, "QuotaTable", "Factor") == pytest.approx(limits.factor(volume(node).consumed), abs=0.05)

    eventually(has_factor)
    change(node, {SOFT: None})
    pause(node, 1)
    assert "broker 1, volume" in causes(node)


def test_the_commands_of_the_drill_pause_producers_and_take_the_pause_back(node: KafkaNode, topic: str) -> None:
    text = (ROOT / "docs/operate.md").read_text(encoding="utf-8").partition("## A drill before you enforce\n")[2]
    commands = text.partition("```sh\n")[2].partition("```")[0]
    (common,) = re.findall(r'^b="--bootstrap-server \S+ (.*)"$', commands, re.MULTILINE)
    lines = re.findall(r"^kafka-configs.sh \$b (.*)$", commands, re.MULTILINE)
    for line, wanted, told in zip(lines, (PAUSE, OPEN), (TURNED_BACK, None), strict=True):
        kafka_configs(node, *shlex.split(f"{common} {line}"))
        eventually(lambda wanted=wanted: state(node) == wanted)
        eventually(lambda told=told: attempt(node.client_config(client_id="test-drill"), topic) == told)


def test_a_pause_whose_only_way_out_is_that_segments_are_offloaded_ends_by_itself(node: KafkaNode, topic: str) -> None:
    fill_topic(node.client_config("alice", "test-filler"), topic, 20_000_000)
    pause(node, volume(node).consumed - 5_000_000)
    remote = Path(node.properties["rsm.config.dir"])
    assert not list(remote.rglob("*.log"))
    assert attempt(node.client_config("alice", "test-stranger"), topic) == TURNED_BACK
    assert attempt(node.client_config(client_id="1"), topic) == TURNED_BACK, "a broker's client-id proves nothing"
    alter_config(node, "TOPIC", topic, {"remote.storage.enable": "true", "local.retention.bytes": "2000000"})
    eventually(lambda: state(node) == OPEN, what="offloaded segments leave the disk")
    assert len(list(remote.rglob("*.log"))) > 4, "segments were offloaded"
    eventually(lambda: attempt(node.client_config("alice", "test-stranger"), topic) is None)
    assert len(values(node, topic)) == end_offset(node, topic), "what is offloaded can be read"


def test_transactions_end_and_share_groups_acknowledge_in_a_pause(node: KafkaNode, topic: str) -> None:
    producer = begun(node.client_config("alice", "test-tx"), topic)
    pause(node, 1)
    producer.commit_transaction(60)
    assert values(node, topic) == ["before"], "its marker was written"
    if node.version != DEFAULT_VERSION:  # share groups were not ready for use in 4.0
        return
    group = f"test-{topic}"
    alter_config(node, "GROUP", group, {"share.auto.offset.reset": "earliest"})
    reader = {"bootstrap.servers": node.bootstrap, "group.id": group, "client.id": "test-reader"}
    assert helper(node.version).ask("read-shared", topic, 1, reader) == ["before"]
    ends = [end_offset(node, "__share_group_state", partition) for partition in range(2)]
    assert sum(ends) > 0, "the acknowledgement was stored"


# After the others, so that each of them has been started.
def test_no_supplier_is_ever_asked_about_kafkas_own_clients(node: KafkaNode) -> None:
    for client_id in KAFKAS if node.version == DEFAULT_VERSION else KAFKAS[:2]:
        assert quota_now(node, "broker", client_id, "REQUEST").supplier == "broker", f"{client_id} is exempt"
    asked = {tuple(line.split("\t")) for line in (node.directory / "witness").read_text().splitlines()}
    strangers = {(who, client_id) for who, client_id in asked if not client_id.startswith(TESTS)}
    # These two are no brokers: a user of its own, and whom the controllers' listener lets in unproven.
    others = {("tiering", f"{TIERING}_client_1_{what}") for what in ("admin", "consumer", "producer")}
    assert strangers - others - {(ANYONE, "1")} == set()


@pytest.mark.proves("faults.directory-gone")
def test_a_log_directory_that_is_gone_leads_to_a_pause(tmp_path: Path) -> None:
    settings = SETTINGS | {f"{HARD}.min-free-bytes": "1", "validity": "10s"}
    with callback_node(tmp_path, settings, log_dirs=2) as node:
        eventually(lambda: gauge(node, "Factor", "LackOfData") == 0 and state(node) == OPEN)
        node.data_dirs[1].rename(tmp_path / "gone")
        eventually(lambda: gauge(node, "LogDirs", "Offline") == 1)
        eventually(lambda: state(node) == PAUSE)
        eventually(lambda: "data-2" in node.log_text().rpartition("-> PAUSE")[2].splitlines()[0])
