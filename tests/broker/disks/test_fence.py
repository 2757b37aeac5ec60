"""A PAUSE on a real broker: nothing is appended or created, nothing is lost, and no burst follows it (the tap)."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient

from harness.clients.consumer import ConsumerLoad
from harness.clients.mutations import mutate
from harness.clients.producer import ProducerLoad, fill_topic
from harness.clients.raw import Kind
from harness.java.helper import Helper
from harness.kafka.admin import alter_broker_config, create_topic, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX
from harness.system.waiting import eventually
from quotahost.cli.console import Level
from quotahost.cli.doctor.doctor import ask_cluster
from quotahost.records.topics import TIERING
from tests.broker.support.acls import acl, any_acl, give
from tests.broker.support.commands import connect_as, top
from tests.broker.support.node import (
    FACTOR,
    FIXED,
    STANDARD,
    callback_node,
    callback_properties,
    changed,
    set_factor,
    topic_of,
)
from tests.broker.support.numbers import attempt, begun, end_offset, stopped_at, values, wait_until_turned_back
from tests.broker.support.seen import ANYONE, gauge, has_own_quota, wait_for_rate, wait_for_watch_topic
from tests.broker.support.volumes import SMALL_BURSTS

USERS: Final = {"alice": "a", "bob": "b", "root": "c"}
SENTENCE: Final = "creates no topics and partitions in a PAUSE"
TURNED_BACK: Final = "NOT_ENOUGH_REPLICAS"
AUTHORIZER: Final = PREFIX + "fence.authorizer"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = FIXED | {"static.excluded.principal.name.list": "User:root", "static.produce": "50M"}
    settings["tasks"] = "publish-usage"
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, settings, users=USERS, properties=SMALL_BURSTS | FENCE) as node:
        yield node
        # Kafka would log this for each sensor at each change of limits (ClientQuotaManager.updateQuotaMetricConfigs).
        assert "already exists. Setting quota to" not in node.log_text()


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    yield topic_of(node, request)
    set_factor(node, 1)
    assert "Unexpected error" not in node.log_text()


def test_in_a_pause_top_shows_the_cluster_to_who_is_not_excluded(node: KafkaNode, topic: str, tmp_path: Path) -> None:
    alice = connect_as(node, "alice", tmp_path)
    wait_for_watch_topic(node)
    set_factor(node, 0)
    eventually(lambda: [broker["state"] for broker in top(*alice)["brokers"].values()] == ["PAUSE"])
    assert attempt(node.client_config("alice"), topic) == TURNED_BACK


@pytest.mark.proves("kip-13.refused-before-append", "faults.full-disk")
@pytest.mark.parametrize("idempotent", [False, True], ids=["default", "idempotent"])
def test_a_producer_appends_nothing_in_a_pause_and_loses_nothing(node: KafkaNode, topic: str, idempotent: bool) -> None:
    config = node.client_config("alice", "numbers") | {"enable.idempotence": idempotent}
    with ProducerLoad(config, topic, rate=1_500, numbered=True) as numbers:
        eventually(lambda: numbers.meter.messages > 50)
        set_factor(node, 0)
        sent = numbers.sent
        stopped_at(node, topic)
        assert numbers.sent > sent, "the client sends on during the PAUSE"
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
def test_a_transaction_that_meets_a_pause_commits_after_it_or_is_aborted_in_it(node: KafkaNode, topic: str) -> None:
    client = node.client_config("alice", "tx")
    producer = begun(client, topic)
    set_factor(node, 0)
    producer.produce(topic, "meanwhile", partition=0)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(producer.commit_transaction, 60)
        wait_until_turned_back(node, more=2)
        assert not done.done()
        assert end_offset(node, topic) == 0, "the transaction isn't committed yet"
        set_factor(node, 1)
        done.result(120)
    other = begun(client, topic)
    set_factor(node, 0)
    other.abort_transaction(120)
    assert values(node, topic) == ["before", "meanwhile"]


@pytest.mark.proves("proposal-035.pause")
def test_clients_that_reconnect_for_every_batch_append_nothing_and_each_is_counted(node: KafkaNode, topic: str) -> None:
    config = node.client_config("alice", "again") | {"acks": "1"}
    assert attempt(config, topic) is None
    set_factor(node, 0)
    before = gauge(node, "Fence", "Rejections")
    assert {attempt(config, topic) for _ in range(20)} == {TURNED_BACK}
    assert gauge(node, "Fence", "Rejections") == before + 20
    attempt(config | {"acks": "0"}, topic)
    eventually(lambda: gauge(node, "Fence", "Rejections") > before + 20)
    assert end_offset(node, topic) == 1
    set_factor(node, 1)
    assert attempt(config, topic) is None


def test_consumers_read_on(node: KafkaNode, topic: str) -> None:
    fill_topic(node.client_config("alice", "filler"), topic, 2_000_000)
    set_factor(node, 0)
    with ConsumerLoad(node.client_config("bob", "reader"), topic) as load:
        eventually(lambda: load.meter.bytes > 4_000_000)
    assert load.errors == []


@pytest.mark.proves("proposal-035.own-updates")
def test_excluded_principals_and_the_brokers_client_ids_alone_pass_the_fence(node: KafkaNode, topic: str) -> None:
    create_topic(node, TIERING)
    set_factor(node, 0)
    assert attempt(node.client_config("root", "any"), topic) is None
    assert attempt(node.client_config(client_id=str(node.node_id)), topic) is None
    assert attempt(node.client_config(client_id="stranger"), topic) == TURNED_BACK
    assert attempt(node.client_config("bob", str(node.node_id)), topic) == TURNED_BACK
    assert end_offset(node, topic) == 2
    assert attempt(node.client_config("alice", "any"), TIERING) == TURNED_BACK, "tiered storage is off, so no exception"
    alter_broker_config(node, {PREFIX + "static.excluded.principal.name.list": "User:bob"})
    eventually(lambda: attempt(node.client_config("bob", "any"), topic) is None)
    eventually(lambda: attempt(node.client_config("root", "any"), topic) == TURNED_BACK)
    alter_broker_config(node, {PREFIX + "static.excluded.principal.name.list": None})


# ---- the tap: no burst after a PAUSE, and no long silence on the way down ----

QUOTA: Final = 2_000_000  # bytes/s
WINDOWS: Final = 3.0  # seconds that Kafka's quota looks back


@pytest.fixture
def eager(node: KafkaNode, topic: str) -> Iterator[ProducerLoad]:
    """A producer that has had its quota for a few windows."""
    set_quota(node, {"producer_byte_rate": QUOTA}, client_id="eager")
    eventually(lambda: gauge(node, "QuotaTable", "LimitFactor") == 1)
    with ProducerLoad(node.client_config("alice", "eager"), topic) as load:
        wait_for_rate(pytest.approx(QUOTA, rel=0.2), load)
        yield load


def test_after_a_pause_a_producer_gets_its_quota_not_its_windows_at_once(node: KafkaNode, eager: ProducerLoad) -> None:
    set_factor(node, 0)
    paused, meter = time.monotonic(), eager.meter
    eventually(lambda: time.monotonic() - paused > WINDOWS and meter.rate_over(WINDOWS) == 0, what="windows are empty")

    released = time.monotonic()
    alter_broker_config(node, {FACTOR: "1"})
    after = meter.total_at(released) + 3 * QUOTA
    eventually(lambda: meter.total_at(time.monotonic()) > after, what="the client has sent 3 s of its quota")

    # Kafka's two empty windows would let the producer send 2 s of its quota immediately. A busy machine only delays
    # acknowledgements, so it doesn't make a total run further ahead of the quota.
    moments = [released + n * meter.RESOLUTION for n in range(int(1.5 / meter.RESOLUTION))]
    ahead = [meter.total_at(at) - meter.total_at(released) - QUOTA * (at - released) for at in moments]
    assert max(ahead) <= QUOTA
    # A busy machine delays the producer for a while; a tap that doesn't open would delay it for good.
    eventually(lambda: meter.rate_over(WINDOWS) >= 0.7 * QUOTA)


def test_a_factor_falling_at_once_silences_nobody_as_long_as_kafka_would(node: KafkaNode, eager: ProducerLoad) -> None:
    begin = time.monotonic()
    set_factor(node, 0.3)
    eventually(lambda: gauge(node, "QuotaTable", "LimitFactor") == 0.3)
    wait_for_rate(pytest.approx(0.3 * QUOTA, rel=0.3), eager)
    # The test reads the broker's throttle time, because a busy machine may silence a client for other reasons. It is
    # 0.2 s on a quiet machine. If the limit fell immediately, it would be (1 - 0.3) / 0.3 times two windows or more.
    assert 0 < eager.max_throttle(begin) < 4


# ---- topics and partitions ----


def topics(node: KafkaNode) -> set[str]:
    return set(AdminClient(node.client_config()).list_topics(timeout=30).topics)


def refused(node: KafkaNode) -> float:
    return gauge(node, "Fence", "CreationsRefused")


def test_kafkas_own_admin_client_is_told_why_and_of_a_topic_that_exists_as_without_a_pause(
    node: KafkaNode, topic: str
) -> None:
    set_factor(node, 0)
    before = refused(node)
    kinds: tuple[Kind, ...] = ("create", "grow", "create")
    for kind, wanted in zip(kinds, ({"new": 3}, {topic: 3}, {topic: 1, "newer": 1}), strict=True):
        for error in mutate(node, "app", kind, wanted, retry=True).values():
            assert error is not None
            assert error.error == "PolicyViolationException"
            assert SENTENCE in error.message
    (error,) = mutate(node, "connect", "create", {topic: 1}).values()  # a Connect worker does this at each start
    assert error is not None
    assert error.error == "TopicExistsException"
    assert refused(node) == before + 3, "the client doesn't retry if the topic exists"
    assert not {"new", "newer"} & topics(node)
    node.wait_for_log(r"PAUSE: \d requests to create topics or partitions were refused.*pause.creation=allow")


def test_a_topic_that_a_producer_names_is_not_created_before_the_pause_ends(node: KafkaNode, topic: str) -> None:
    set_factor(node, 0)
    config = node.client_config(client_id="names") | {"message.timeout.ms": "3000"}
    before = refused(node)
    # A record may time out before a broker has refused to create its topic.
    eventually(lambda: attempt(config, "by-itself") is not None and refused(node) > before)
    assert "by-itself" not in topics(node)
    set_factor(node, 1)
    eventually(lambda: attempt(config, "by-itself") is None)


def test_allow_and_shadow_let_all_be_created_and_shadow_counts(node: KafkaNode, topic: str) -> None:
    set_factor(node, 0)
    before = gauge(node, "Fence", "CreationsShadowed")
    with changed(node, {"pause.creation": "allow"}):
        eventually(lambda: mutate(node, "app", "create", {"allowed": 1}) == {"allowed": None})
    assert gauge(node, "Fence", "CreationsShadowed") == before
    names = (f"shadowed-{number}" for number in count())

    def passes_and_is_counted() -> bool:
        """Creates a new topic each time: until the change is in force, the former rule admits all without counting."""
        name, before = next(names), gauge(node, "Fence", "CreationsShadowed")
        assert mutate(node, "app", "create", {name: 1}) == {name: None}
        return gauge(node, "Fence", "CreationsShadowed") > before

    with changed(node, {"shadow": "all"}):
        eventually(passes_and_is_counted)


# ---- the authorizer behind it ----


def test_without_an_inner_authorizer_acls_are_disabled_as_in_kafka(node: KafkaNode) -> None:
    admin = AdminClient(node.client_config("alice", "acls"))
    with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
        give(admin, acl("alice", "t", AclOperation.WRITE))
    findings = [each for each in ask_cluster(node.bootstrap, {}, None)[0] if each.level is Level.WEAK]
    assert ["everybody who can connect may write to __quotahost_snapshots" in each.text for each in findings] == [True]


@pytest.mark.parametrize("version", ["4.3.1", pytest.param("4.0.1", marks=pytest.mark.long)])
def test_acls_hold_as_with_kafkas_own_authorizer_in_a_pause_too(tmp_path: Path, version: str) -> None:
    properties = FENCE | {AUTHORIZER: STANDARD, "super.users": f"User:{ANYONE};User:root"}
    with callback_node(tmp_path, FIXED, users=USERS, properties=properties, version=version) as node:
        create_topic(node, "t")
        admin = AdminClient(node.client_config("root", "acls"))
        give(admin, acl("alice", "t", AclOperation.WRITE), acl("bob", "t", AclOperation.DESCRIBE))

        def outcomes() -> dict[str, str | None]:
            return {user: attempt(node.client_config(user, "p"), "t") for user in USERS}

        denied = "TOPIC_AUTHORIZATION_FAILED"
        eventually(lambda: outcomes() == {"alice": None, "bob": denied, "root": None})
        set_factor(node, 0)
        assert outcomes() == {"alice": TURNED_BACK, "bob": denied, "root": None}, "super users pass and can repair"
        assert attempt(node.client_config(client_id="p"), "t") == TURNED_BACK, "an anonymous client is no super user"
        # A cluster's first consumer can commit, although the topic of offsets doesn't exist yet.
        assert "__consumer_offsets" not in topics(node)
        member = Consumer(node.client_config("root", "first") | {"group.id": "first"})
        member.subscribe(["t"])
        eventually(lambda: member.poll(1) is None and bool(member.assignment()))
        (committed,) = member.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        assert committed.error is None
        member.close()
        set_factor(node, 1)
        assert len(admin.describe_acls(any_acl()).result(120)) == 2
        (deleted,) = admin.delete_acls([any_acl("User:alice")]).values()
        assert [each.principal for each in deleted.result(120)] == ["User:alice"]
        eventually(lambda: outcomes()["alice"] is not None)
        assert "Unexpected error" not in node.log_text()


@pytest.mark.parametrize("controllers_have", [STANDARD, pytest.param("", marks=pytest.mark.long)])
def test_a_broker_starting_in_a_pause_turns_back_the_first_request(tmp_path: Path, controllers_have: str) -> None:
    properties = callback_properties(FIXED | {"plugin.fixed.factor": "0"}) | FENCE | {"super.users": f"User:{ANYONE}"}
    properties |= {AUTHORIZER: controllers_have or "none"}
    cluster = Cluster(tmp_path, brokers=1, controllers=1, classpath=[JAR], properties=properties)
    cluster.controllers[0].properties = properties | {"authorizer.class.name": controllers_have}
    with cluster:
        (broker,) = cluster.brokers
        create_topic(broker, "t")
        assert attempt(broker.client_config(client_id="p"), "t") == TURNED_BACK
        assert gauge(broker, "Fence", "Closed") == 1
        assert gauge(cluster.controllers[0], "Fence", "Installed") == 0
        eventually(lambda: has_own_quota(broker, ANYONE, "p"))
        assert quota_now(broker, ANYONE, "p").limit is None, "the client is unlimited, as before the pause"
