"""Tests plugins' clients of a cluster that doesn't answer or isn't complete yet, and errors that contain a secret."""

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from itertools import pairwise
from operator import ne
from socketserver import ThreadingTCPServer
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from weakref import ref

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from harness.system.proxy import Proxy
from harness.system.waiting import eventually
from quotahost.base.errors import QuotahostError, Unusable
from quotahost.kafka import commands, follower, publisher, registered_brokers
from quotahost.kafka.admin import ensure_compacted
from quotahost.kafka.client import Connection, NoAnswer, Session, lacked, login
from quotahost.kafka.commands import CompactedTopic
from quotahost.kafka.follower import Follower
from quotahost.kafka.publisher import Publisher
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, context

# ---- rights ----

SASL = {"security.protocol": "sasl_ssl", "sasl.username": "app 1", "sasl.password": "hush"}
GIVE = "kafka-acls.sh --add --allow-principal"


@pytest.mark.parametrize(
    ("config", "code", "words"),
    [
        (SASL, KafkaError.TOPIC_AUTHORIZATION_FAILED,
         ("'User:app 1' may not Read topic t",
          f"{GIVE} 'User:app 1' --operation Read --topic t (docs/security.md)")),
        ({"security.protocol": "SSL"}, KafkaError.GROUP_AUTHORIZATION_FAILED,
         ("User:NAME may not Describe group quotahost-", f"{GIVE} User:NAME --operation Describe "
          "--resource-pattern-type prefixed --group quotahost- (docs/security.md)")),
        ({}, KafkaError.TOPIC_AUTHORIZATION_FAILED,
         ("User:ANONYMOUS may not Read topic t",
          "log in with --client-config or a broker's kafka.* (docs/security.md)")),
        (SASL, KafkaError._TRANSPORT, None),
    ],
)  # fmt: skip
def test_who_lacks_which_right_is_told(config: dict[str, str], code: int, words: tuple[str, str] | None) -> None:
    assert lacked(KafkaError(code), "Read", "t", config) == words


# ---- connections ----

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}


def nothing(*_: object) -> None: ...


@pytest.fixture
def mock() -> Iterator[str]:
    """The address of librdkafka's mock cluster."""
    admin = AdminClient({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = admin.list_topics(timeout=10).brokers.values()
    yield f"{address.host}:{address.port}"
    del admin


def test_why_a_first_record_is_not_published_is_said_once_the_start_is_over(caplog: pytest.LogCaptureFixture) -> None:
    broker, clock = FakeBroker(), Clock()
    broker.client, broker.brokers = NOBODY, TimeoutError("the broker stops")  # the publisher asks for brokers later
    publisher = Publisher[bytes](context(broker, startup__grace="30s"), "t", ne, clock)
    publisher.offer(b"1", lambda _: pytest.fail("the record is made without a connection"), 0)
    assert (caplog.messages, broker.number("Publication", "Errors")) == ([], 0), "no error yet: the broker is starting"
    for _ in range(2):
        clock.now += 31
        publisher.offer(b"1", bytes, 0)
    assert caplog.messages == ["not connected: no process listens on this address"]
    assert broker.number("Publication", "Errors") == 2


def test_a_topic_that_nobody_has_made_yet_is_no_fault(mock: str, caplog: pytest.LogCaptureFixture) -> None:
    broker, absent = FakeBroker(), list[float]()
    broker.client = {"bootstrap.servers": mock}
    made = context(broker, startup__grace="1ms")
    Follower(made, "t", nothing, absent=lambda: absent.append(time.monotonic()))
    eventually(lambda: len(absent) > 1)
    made.closing.close()
    eventually(lambda: "quotahost-mine-follower" not in {thread.name for thread in threading.enumerate()})
    assert absent[1] - absent[0] > 2, "each retry logs in and may request a token, so retries are rare"
    assert caplog.messages == []


def test_who_may_see_a_topic_and_not_read_it_tries_again_seldom(mock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishers have the right Write, which includes Describe."""
    begun, seen = list[float](), SimpleNamespace(error=None, partitions={0: None})
    denied = SimpleNamespace(error=lambda: KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    reader = Mock(**{"list_topics.return_value.topics": {"t": seen}, "consume.return_value": [denied]})
    monkeypatch.setattr(follower, "consumer", lambda *_: begun.append(time.monotonic()) or reader)
    made = context(FakeBroker(client={"bootstrap.servers": mock}))
    Follower(made, "t", nothing)
    eventually(lambda: len(begun) > 1)
    made.closing.close()
    assert begun[1] - begun[0] > 2


def test_a_login_that_a_broker_refused_long_ago_is_no_reason_of_todays_outage(mock: str) -> None:
    with Proxy(int(mock.split(":")[1])) as network:
        mine = login(context(FakeBroker(client={"bootstrap.servers": f"127.0.0.1:{network.port}"})))
        before = mine.enter("t")
        before.config["error_cb"](KafkaError(KafkaError._SSL, "one broker was just starting"))
        careful = mine.enter("t")
        assert (before.stands(), careful.stands()) == (False, True), "other brokers still accept the careful client"
        consumer = Consumer({**careful.config, "group.id": "g"})
        network.cut()
        consumer.assign([TopicPartition("t", 0)])
        eventually(lambda: consumer.poll(0.1) or not careful.stands())
        with pytest.raises(NoAnswer) as today:
            mine.enter("t")
        consumer.close()
    assert "TLS" not in str(today.value)


def test_a_broker_that_closes_each_connection_is_tried_seldom_as_it_may_log_each() -> None:
    """Kafka logs two stack traces if a client's certificate fits none of ssl.principal.mapping.rules."""
    came = [time.monotonic()]

    def longest_pause() -> float:
        with pytest.raises(NoAnswer, match="closes the connection"):
            mine.enter("t")
        return max(after - before for before, after in pairwise(came))

    handler: Any = lambda *_: came.append(time.monotonic())  # noqa: E731 - the server closes the connection
    with ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        mine = login(context(FakeBroker(client={"bootstrap.servers": f"127.0.0.1:{server.server_address[1]}"})))
        eventually(lambda: longest_pause() > 2, timeout=30)
        server.shutdown()


def test_while_no_new_token_comes_a_client_stays_and_only_new_ones_wait() -> None:
    """A client asks for a new token when its own has a fifth of its life left; if it left then, it could not return."""
    tokens = {
        "bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
        "sasl.oauthbearer.client.id": "broker", "sasl.oauthbearer.client.secret": "hush",
    }  # fmt: skip
    mine = login(context(FakeBroker(client=tokens)))
    session, heard = Session(mine, careful=False), list[KafkaError]()
    hear: Callable[[KafkaError], None] = session.config["error_cb"]
    given: Any = {**session.config, "error_cb": lambda error: heard.append(error) or hear(error)}
    client = AdminClient(given)
    eventually(lambda: (client.poll(0.1), any("token" in error.str() for error in heard))[1])
    assert session.stands()
    with pytest.raises(NoAnswer, match=r"no token comes from sasl\.oauthbearer\.token\.endpoint\.url"):
        mine.enter("t")
    assert not mine.careful, "no broker has refused a client"


@pytest.mark.parametrize(
    ("line", "password", "told"),
    [
        ("security.protocol", 'S3CR3T "1', 'property "security.protocol"'),
        ("sasl.mechanism", "S3CR3T 1", 'property "sasl.mechanisms"'),
        ("sasl.mechanism", "S3CR3T", "Unsupported SASL mechanism"),
        ("sasl.password", "${file:/etc/x:S3CR3T}", "password refers to a config provider, which has no such key"),
    ],
)
def test_neither_a_misplaced_password_nor_a_missing_key_is_shown(line: str, password: str, told: str) -> None:
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", line: password}
    with pytest.raises(NoAnswer, match=told) as failed:
        login(context(FakeBroker(client=client))).enter("t")
    assert "S3CR3T" not in str(failed.value)


def test_a_login_that_is_no_longer_used_leaves_the_cluster_at_once(mock: str) -> None:
    """Otherwise, after a live change of the password, the client would still log in with the old password."""
    broker = FakeBroker(client={"bootstrap.servers": mock}, brokers={1: False})
    gc.collect()
    gc.disable()
    try:
        mine = context(broker, startup__grace="1ms")
        left = ref(login(mine))
        assert left() is None, "an unused login is released"
        follower, publisher = Follower(mine, "t", nothing), Publisher[bytes](mine, "t", ne)
        publisher.offer(b"1", bytes, 0)
        left = ref(login(mine))
        follower.close()
        assert left() is not None
        mine.closing.close()
        eventually(lambda: left() is None)
    finally:
        gc.enable()


def test_a_plugin_that_stays_shows_its_connection_after_another_of_its_name_was_closed() -> None:
    broker = FakeBroker()
    one = Connection(context(broker), "twice")
    one.works()
    Connection(context(broker), "twice").close()  # a live change that was not applied
    one.works()
    assert broker.shown["Connection", "twice", "Connected"] == 1
    one.close()
    assert ("Connection", "twice", "Connected") not in broker.shown


# ---- the registered brokers ----


def test_answers_are_handed_on_and_while_the_cluster_is_silent_the_last_holds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the cluster has answered once, its silence is logged even within startup.grace."""
    monkeypatch.setattr(registered_brokers, "_PERIOD", 0.002)
    caplog.set_level("INFO")
    broker, answers = FakeBroker(), list[Mapping[str, bool]]()
    registered = RegisteredBrokers(context(broker, startup__grace="1h"), answers.append)
    assert not registered.answered
    broker.brokers = {1: False, 2: True}
    eventually(lambda: registered.answered)
    assert (answers[0], caplog.messages) == ({"1": False, "2": True}, [])
    broker.brokers = TimeoutError("no answer")
    eventually(lambda: caplog.messages)
    broker.brokers = {1: False}
    eventually(lambda: answers[-1] == {"1": False})
    registered._loop.close()
    silent = "can't list the registered brokers; the last list stays in use: no answer"
    assert (caplog.messages, registered.answered) == ([silent, "the cluster answers again"], True)


# ---- a compacted topic that is created ----


class Admin:
    """The client of a cluster with two live brokers; ``made`` has the number of replicas of each created topic."""

    def __init__(self) -> None:
        self.error: KafkaError | None = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)  # the error of topic t
        self.result: Callable[[float], None] = lambda wait: None
        self.made: list[int] = []

    def list_topics(self, *_: Any, timeout: float) -> Any:
        return SimpleNamespace(topics={"t": SimpleNamespace(error=self.error)}, brokers={1: "", 2: ""})

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, Any]:
        self.made.append(topics[0].replication_factor)
        return {"t": self}

    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Any]:
        return {resources[0]: self}


@pytest.fixture
def admin() -> Any:
    return Admin()


@pytest.mark.parametrize(
    ("exists", "error", "told"),
    [
        *((False, error, "topic t can't be created: names begin with a team")
          for error in (KafkaError.POLICY_VIOLATION, KafkaError.INVALID_REPLICATION_FACTOR)),
        # If the latest metadata says that the topic is denied, librdkafka itself refuses the record.
        (True, KafkaError.TOPIC_AUTHORIZATION_FAILED, "User:ANONYMOUS may not Write topic t; log in with "
         "--client-config or a broker's kafka.* (docs/security.md)"),
    ],
)  # fmt: skip
def test_why_the_cluster_refuses_a_topic_or_its_records_is_named_and_tries_are_rare_as_brokers_log_each(
    mock: str, admin: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    exists: bool, error: int, told: str,
) -> None:  # fmt: skip
    def refused(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(error, "names begin with a team"))

    admin.result, admin.poll, admin.error = refused, nothing, None if exists else admin.error
    monkeypatch.setattr(publisher, "AdminClient", lambda _: admin)
    monkeypatch.setattr(publisher, "Producer", lambda _: SimpleNamespace(produce=refused))
    broker, clock = FakeBroker(), Clock()
    broker.client, broker.brokers = {"bootstrap.servers": mock}, {1: False}
    mine = Publisher[bytes](context(broker, startup__grace="1ms"), "t", ne, clock)
    clock.now += 1
    mine.offer(b"1", bytes, 0)
    assert caplog.messages == [f"not connected: {told}"]
    clock.now += 4
    assert mine.busy()


@pytest.mark.parametrize(
    ("brokers", "gathering", "made"),
    [(5, False, [3]), (2, False, [2]), (1, False, [1]), (0, False, [2]), (2, True, []), (3, True, [3])],
)
def test_it_waits_for_up_to_three_replicas(admin: Any, brokers: int, gathering: bool, made: list[int]) -> None:
    with nullcontext() if made else pytest.raises(QuotahostError, match="t is not created yet"):
        ensure_compacted(admin, "t", lambda: (brokers, gathering))
    assert admin.made == made


def test_no_answer_in_time_is_an_error_of_kafkas_but_for_the_policy_of_a_topic(admin: Any) -> None:
    def late(wait: float) -> None:
        raise TimeoutError

    admin.result = late
    with pytest.raises(KafkaException, match="Timed out"):
        ensure_compacted(admin, "t")
    admin.error = None  # the topic exists; only its cleanup.policy stays unknown
    ensure_compacted(admin, "t")


def test_a_topic_that_deletes_by_age_is_named_once(admin: Any, caplog: pytest.LogCaptureFixture) -> None:
    admin.error, admin.result = None, lambda wait: {"cleanup.policy": SimpleNamespace(value="delete")}
    for _ in range(3):  # for a topic that exists, Java's client is not asked: it may be refused longer than librdkafka
        ensure_compacted(admin, "t", lambda: pytest.fail("the list of registered brokers is asked for"))
    assert caplog.text.count("topic t has cleanup.policy=delete: set compact") == 1


# ---- commands ----


def test_a_topic_made_anew_while_a_command_reads_it_is_not_taken_for_read(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = AdminClient({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = mock.list_topics("t", timeout=10).brokers.values()
    topic = CompactedTopic({"bootstrap.servers": f"{address.host}:{address.port}"}, "t", "test")
    monkeypatch.setattr(commands, "_WAIT", 3.0)
    monkeypatch.setattr(commands, "OFFSET_BEGINNING", 7)  # the next offset of the deleted topic
    with pytest.raises(Unusable, match="t can't be read"):
        list(topic.read())


def test_records_go_to_the_first_partition_also_where_somebody_has_added_some(monkeypatch: pytest.MonkeyPatch) -> None:
    places = list[int]()
    takes = SimpleNamespace(produce=lambda *_, partition=-1, **__: places.append(partition), flush=nothing)
    for name, instead in (("connect", nothing), ("ensure_compacted", nothing), ("Producer", lambda _: takes)):
        monkeypatch.setattr(commands, name, instead)
    CompactedTopic({}, "t", "test").write({b"a": b"1", b"b": None})
    assert places == [0, 0]
