"""The fence on a real broker: while the factor is 0 nothing is appended or created, and nothing is lost."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from harness.clients.consumer import ConsumerLoad
from harness.clients.load import QUICK_QUOTAS
from harness.clients.mutations import mutate
from harness.clients.producer import ProducerLoad, fill_topic
from harness.java.helper import Helper
from harness.java.jars import DEFAULT_VERSION, broker_jars, maven_jar
from harness.java.jdk import class_path, program
from harness.kafka.admin import create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.kafka.properties import login_jaas, write_properties
from harness.plugin import FENCE, JAR
from harness.system.process import LoggedProcess
from harness.system.waiting import eventually
from quotahost.cli.console import Level
from quotahost.cli.doctor.doctor import ask_cluster
from quotahost.records.topics import TIERING
from tests.broker.support.acls import acl, give
from tests.broker.support.commands import connect_as, top
from tests.broker.support.node import FIXED, callback_node, callback_properties, changed, set_factor, topic_name
from tests.broker.support.numbers import attempt, begun, end_offset, records, stopped_at, values, wait_until_turned_back
from tests.broker.support.seen import ANYONE, gauge, has_own_quota, wait_for_watch_topic

USERS: Final = {"alice": "a", "bob": "b", "root": "c"}
TURNED_BACK: Final = "NOT_ENOUGH_REPLICAS"
EXCLUDED: Final = "static.excluded.principal.name.list"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = FIXED | {EXCLUDED: "User:root", "static.produce": "50M"}
    properties = QUICK_QUOTAS | FENCE | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with callback_node(tmp_path_factory.mktemp("node"), settings, users=USERS, properties=properties) as node:
        yield node


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    name = topic_name(request)
    create_topic(node, name)
    yield name
    set_factor(node, 1)
    assert "Unexpected error" not in node.log_text()


@pytest.fixture
def paused(node: KafkaNode, topic: str) -> str:
    """The topic, in a PAUSE."""
    set_factor(node, 0)
    return topic


def rejections(node: KafkaNode) -> float:
    return gauge(node, "Fence", "Rejections")


def creations_refused(node: KafkaNode) -> float:
    return gauge(node, "Fence", "CreationsRefused")


def topics(node: KafkaNode) -> set[str]:
    return set(AdminClient(node.client_config()).list_topics(timeout=30).topics)


# The first one, as coordinators have no topics yet.
def test_consumers_read_on_and_commit_their_offsets_also_the_first_of_a_cluster(node: KafkaNode, topic: str) -> None:
    fill_topic(node.client_config("alice", "filler"), topic, 2_000_000)
    set_factor(node, 0)
    assert "__consumer_offsets" not in topics(node)
    with ConsumerLoad(node.client_config("bob", "reader"), topic) as load:
        eventually(lambda: load.meter.bytes > 4_000_000)
    assert load.errors == []
    own = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer(node.client_config("bob", "member") | own)
    member.subscribe([topic])
    message = eventually(lambda: member.poll(1))
    (committed,) = member.commit(message=message, asynchronous=False)
    assert committed.error is None
    member.close()
    assert "__consumer_offsets" in topics(node)


def test_in_a_pause_top_shows_the_cluster_to_who_is_not_excluded_too(
    node: KafkaNode, topic: str, tmp_path: Path
) -> None:
    alice = connect_as(node, "alice", tmp_path)
    with changed(node, {"tasks": "publish-usage"}):
        wait_for_watch_topic(node)
        set_factor(node, 0)
        eventually(lambda: [broker["state"] for broker in top(*alice)["brokers"].values()] == ["PAUSE"])
    assert attempt(node.client_config("alice"), topic) == TURNED_BACK


@pytest.mark.proves("kip-13.refused-before-append")
@pytest.mark.parametrize("idempotent", [False, True], ids=["default", "idempotent"])
@pytest.mark.proves("faults.full-disk")
def test_a_producer_appends_nothing_in_a_pause_and_loses_nothing_by_it(
    node: KafkaNode, topic: str, idempotent: bool
) -> None:
    config = node.client_config("alice", "numbers") | {"enable.idempotence": idempotent}
    with ProducerLoad(config, topic, rate=1_500, numbered=True) as numbers:
        eventually(lambda: numbers.meter.messages > 50)
        set_factor(node, 0)
        sent = numbers.sent
        stopped_at(node, topic)
        assert numbers.sent > sent, "the client goes on sending meanwhile"
        set_factor(node, 1)
        eventually(lambda: numbers.meter.messages > sent)
        assert numbers.drain() == 0
    assert numbers.errors == []
    found = values(node, topic)
    expected = [str(number) for number in range(numbers.sent)]
    assert (found if idempotent else sorted(set(found), key=int)) == expected


def test_kafkas_own_producer_loses_nothing_and_keeps_the_order(node: KafkaNode, topic: str) -> None:
    java, count = Helper(node.version), 3000
    config = {"bootstrap.servers": node.bootstrap, "client.id": "java", "acks": "all"}
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(java.ask, "produce", topic, count, 2, config, timeout=120)
        eventually(lambda: end_offset(node, topic) > 20)
        set_factor(node, 0)
        assert stopped_at(node, topic)[0] < count
        set_factor(node, 1)
        done.result(120)
    assert values(node, topic) == [str(number) for number in range(count)]


@pytest.mark.proves("faults.transactions")
def test_a_transaction_that_meets_a_pause_commits_after_it(node: KafkaNode, topic: str) -> None:
    producer = begun(node.client_config("alice", "tx"), topic)
    set_factor(node, 0)
    producer.produce(topic, "meanwhile", partition=0)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(producer.commit_transaction, 60)
        wait_until_turned_back(node, more=2)
        assert not done.done()
        assert end_offset(node, topic) == 0, "nothing is committed yet"
        set_factor(node, 1)
        done.result(120)
    assert values(node, topic) == ["before", "meanwhile"]


@pytest.mark.proves("proposal-035.pause")
@pytest.mark.parametrize(("acks", "told"), [("1", TURNED_BACK), ("0", None)])
def test_clients_that_reconnect_for_every_batch_append_nothing_and_each_is_counted(
    node: KafkaNode, topic: str, acks: str, told: str | None
) -> None:
    config = node.client_config("alice", "again") | {"acks": acks}
    assert attempt(config, topic) is None
    set_factor(node, 0)
    before = rejections(node)
    assert {attempt(config, topic) for _ in range(20)} == {told}
    eventually(lambda: rejections(node) == before + 20)
    assert end_offset(node, topic) == 1
    set_factor(node, 1)
    assert attempt(config, topic) is None


@pytest.mark.proves("proposal-035.own-updates")
def test_excluded_principals_and_the_brokers_client_ids_pass_the_fence_and_other_clients_do_not(
    node: KafkaNode, paused: str
) -> None:
    assert attempt(node.client_config("root", "any"), paused) is None
    assert attempt(node.client_config(client_id=str(node.node_id)), paused) is None
    assert attempt(node.client_config(client_id="stranger"), paused) == TURNED_BACK
    assert attempt(node.client_config("bob", str(node.node_id)), paused) == TURNED_BACK
    assert end_offset(node, paused) == 2
    with changed(node, {EXCLUDED: "User:bob"}):
        eventually(lambda: attempt(node.client_config("bob", "any"), paused) is None)
        eventually(lambda: attempt(node.client_config("root", "any"), paused) == TURNED_BACK)


@pytest.mark.usefixtures("topic")
def test_without_tiered_storage_its_topic_is_one_like_any_other(node: KafkaNode) -> None:
    create_topic(node, TIERING)
    set_factor(node, 0)
    assert attempt(node.client_config("alice", "any"), TIERING) == TURNED_BACK


def test_in_shadow_everything_is_appended_and_created_and_counted(node: KafkaNode, paused: str) -> None:
    alice = node.client_config("alice", "shadow")
    with changed(node, {"shadow": "all"}):
        eventually(lambda: attempt(alice, paused) is None)
        before, shadowed = rejections(node), gauge(node, "Fence", "Shadowed")
        assert attempt(alice, paused) is None
        assert gauge(node, "Fence", "Shadowed") == shadowed + 1
        assert rejections(node) == before
        before = gauge(node, "Fence", "CreationsShadowed")
        eventually(lambda: mutate(node, "app", "create", {"shadowed": 1}) == {"shadowed": None})
        assert gauge(node, "Fence", "CreationsShadowed") == before + 1
    eventually(lambda: attempt(alice, paused) == TURNED_BACK)


# ---- topics and partitions -----------------------------------------------------------------------------------------


def test_kafkas_own_admin_client_is_told_why_and_how_to_allow_it_and_does_not_try_again(
    node: KafkaNode, paused: str
) -> None:
    before = creations_refused(node)
    creates = mutate(node, "app", "create", {"new": 3}, retry=True)
    grows = mutate(node, "app", "grow", {paused: 3}, retry=True)
    for error in (creates["new"], grows[paused]):
        assert error is not None
        assert error.error == "PolicyViolationException"
        assert "creates no topics and partitions in a PAUSE" in error.message
    assert creations_refused(node) == before + 2, "one request each"
    assert "new" not in topics(node)
    node.wait_for_log(r"PAUSE: \d requests to create topics or partitions were refused.*pause.creation=allow")
    shadowed = gauge(node, "Fence", "CreationsShadowed")
    with changed(node, {"pause.creation": "allow"}):
        eventually(lambda: mutate(node, "app", "create", {"new": 1}) == {"new": None})
    assert gauge(node, "Fence", "CreationsShadowed") == shadowed


def test_who_asks_for_a_topic_that_exists_is_told_so_as_without_a_pause(node: KafkaNode, paused: str) -> None:
    before = creations_refused(node)
    (error,) = mutate(node, "connect", "create", {paused: 1}).values()  # as a Connect worker at each start
    assert error is not None
    assert error.error == "TopicExistsException"
    errors = mutate(node, "connect", "create", {paused: 1, "newer": 1}).values()
    assert {error and error.error for error in errors} == {"PolicyViolationException"}
    assert creations_refused(node) == before + 1


@pytest.mark.usefixtures("paused")
def test_a_topic_that_a_producer_names_is_not_created_before_the_pause_ends(node: KafkaNode) -> None:
    config = node.client_config("alice", "names") | {"message.timeout.ms": "3000"}
    before = creations_refused(node)

    def is_refused() -> bool:
        """Whether a broker was asked for the topic, too, in the time that the record has."""
        assert attempt(config, "by-itself") is not None
        return creations_refused(node) > before

    eventually(is_refused)
    assert "by-itself" not in topics(node)
    set_factor(node, 1)
    eventually(lambda: attempt(config, "by-itself") is None)


# ---- a Kafka Streams application with exactly_once_v2 meets a PAUSE in which Kafka aborts its transaction ------------


@pytest.fixture
def application(node: KafkaNode, tmp_path: Path) -> Iterator[LoggedProcess]:
    """The application, in a JVM of its own."""
    for topic in ("in", "copy", "counts"):
        create_topic(node, topic)
    settings = {
        "application.id": "counting",
        "processing.guarantee": "exactly_once_v2",
        "replication.factor": "1",
        "consumer.auto.offset.reset": "earliest",
        # A commit ends the transaction: a PAUSE is to begin between two.
        "commit.interval.ms": "2000",
        "producer.transaction.timeout.ms": "5000",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": login_jaas("PLAIN", "alice", USERS["alice"]),
        "bootstrap.servers": node.client_config("alice")["bootstrap.servers"],
        "state.dir": str(tmp_path / "state"),
    }
    write_properties(tmp_path / "streams.properties", settings)
    classes = class_path([maven_jar(f"org.apache.kafka:kafka-streams:{DEFAULT_VERSION}"), broker_jars()])
    command = [program("java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes]
    command += [str(Path(__file__).with_name("CountingStream.java")), str(tmp_path / "streams.properties")]
    process = LoggedProcess(tmp_path / "streams.log")
    process.launch_command(command, dict(os.environ))
    yield process
    process.kill()
    set_factor(node, 1)


def is_open(node: KafkaNode) -> bool:
    """Whether a transaction that has written to ``copy`` has not ended: it has records before its end."""
    consumer = Consumer(node.client_config() | {"group.id": "harness-reader", "isolation.level": "read_uncommitted"})
    try:
        _, written = consumer.get_watermark_offsets(TopicPartition("copy", 0), timeout=60)
    finally:
        consumer.close()
    return end_offset(node, "copy") < written


@pytest.mark.long
@pytest.mark.proves("faults.streams")
def test_a_streams_application_loses_and_doubles_nothing_by_a_pause_and_goes_on_by_itself(
    node: KafkaNode, application: LoggedProcess
) -> None:
    config = node.client_config("root") | {"enable.idempotence": True}
    with ProducerLoad(config, "in", rate=500, numbered=True) as feeder:
        eventually(lambda: end_offset(node, "counts") > 0, on_timeout=lambda: application.log.tail())

        def cut_off() -> bool:
            set_factor(node, 1)
            eventually(lambda: is_open(node))
            set_factor(node, 0)
            stopped_at(node, "copy")
            return is_open(node)

        eventually(cut_off, what="a PAUSE that begins within a transaction")
        eventually(lambda: not is_open(node), what="Kafka aborts the transaction")
        assert application.running
        set_factor(node, 1)
        sent = feeder.sent
        eventually(lambda: feeder.meter.messages > sent)
        assert feeder.drain() == 0

    expected = [str(number) for number in range(feeder.sent)]
    eventually(lambda: len(values(node, "copy")) >= len(expected), on_timeout=lambda: application.log.tail())
    assert values(node, "copy") == expected
    digits = {digit.encode(): str(count).encode() for digit, count in Counter(each[-1] for each in expected).items()}
    eventually(lambda: dict(records(node, "counts")) == digits, what="each number is counted once")
    assert application.running


# ---- authorizers ----------------------------------------------------------------------------------------------------


def test_without_an_inner_authorizer_acls_are_disabled_as_in_kafka(node: KafkaNode) -> None:
    admin = AdminClient(node.client_config("alice", "acls"))
    with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
        give(admin, acl("alice", "t", AclOperation.WRITE))
    findings = [each for each in ask_cluster(node.bootstrap, {}, None)[0] if each.level is Level.WEAK]
    assert ["everybody who can connect may write to __quotahost_snapshots" in each.text for each in findings] == [True]


@pytest.mark.parametrize("version", ["4.3.1", pytest.param("4.0.1", marks=pytest.mark.long)])
def test_acls_hold_as_with_kafkas_own_authorizer_in_a_pause_too(tmp_path: Path, version: str) -> None:
    properties = FENCE | {"super.users": f"User:{ANYONE};User:root"}
    settings = {name: value for name, value in FIXED.items() if name != "fence.authorizer"}
    with callback_node(tmp_path, settings, users=USERS, properties=properties, version=version) as node:
        create_topic(node, "t")
        admin = AdminClient(node.client_config("root", "acls"))
        give(admin, acl("alice", "t", AclOperation.WRITE), acl("bob", "t", AclOperation.DESCRIBE))

        def outcomes() -> dict[str, str | None]:
            return {user: attempt(node.client_config(user, "p"), "t") for user in USERS}

        denied = "TOPIC_AUTHORIZATION_FAILED"
        eventually(lambda: outcomes() == {"alice": None, "bob": denied, "root": None})
        set_factor(node, 0)
        assert outcomes() == {"alice": TURNED_BACK, "bob": denied, "root": None}, "super users repair things"
        assert attempt(node.client_config(client_id="p"), "t") == TURNED_BACK, "but everybody is no super user"
        set_factor(node, 1)
        anything: Any = None  # the stubs don't allow None
        kind, pattern = ResourceType.ANY, ResourcePatternType.ANY
        every, alices = (
            AclBindingFilter(kind, anything, pattern, user, anything, AclOperation.ANY, AclPermissionType.ANY)
            for user in (anything, "User:alice")
        )
        assert len(admin.describe_acls(every).result(120)) == 2
        (deleted,) = admin.delete_acls([alices]).values()
        assert [each.principal for each in deleted.result(120)] == ["User:alice"]
        eventually(lambda: outcomes()["alice"] is not None)
        assert "Unexpected error" not in node.log_text()


@pytest.mark.parametrize(
    "controllers_have",
    ["org.apache.kafka.metadata.authorizer.StandardAuthorizer", pytest.param(None, marks=pytest.mark.long)],
)
def test_a_broker_that_starts_in_a_pause_turns_back_the_first_request_whatever_controllers_have(
    tmp_path: Path, controllers_have: str | None
) -> None:
    settings = FIXED | {"plugin.fixed.factor": "0", "fence.authorizer": controllers_have or "none"}
    properties = callback_properties(settings) | FENCE | {"super.users": f"User:{ANYONE}"}
    cluster = Cluster(tmp_path, brokers=1, controllers=1, classpath=[JAR], properties=properties)
    cluster.controllers[0].properties = properties | {"authorizer.class.name": controllers_have or ""}
    with cluster:
        (broker,) = cluster.brokers
        create_topic(broker, "t")
        assert attempt(broker.client_config(client_id="p"), "t") == TURNED_BACK
        assert gauge(broker, "Fence", "Closed") == 1
        assert gauge(cluster.controllers[0], "Fence", "Installed") == 0
        eventually(lambda: has_own_quota(broker, ANYONE, "p"))
        assert quota_now(broker, ANYONE, "p").limit is None, "unlimited, as before the pause"
