"""Topic quotas on a real broker ("Broker side quota (V1)") limit the topics above their share and lose no record.

The control is on-off: the fence admits a greedy topic and turns it back every few seconds. So the tests compare means
over 30 s, about ten such turns, by the broker's own count of appended bytes. A busy machine may stall, so the tests
check the last 30 s repeatedly.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final
from zipfile import ZipFile

import pytest
from confluent_kafka import KafkaError, Message, Producer

from harness.clients.producer import ProducerLoad, fill_topic
from harness.java.helper import Helper, HelperError
from harness.java.jars import broker_jars
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, kafka_configs
from harness.kafka.admin_socket import state_now
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, PREFIX
from harness.system.waiting import eventually
from quotahost.records import topics as records
from tests.broker.support.node import callback_node, changed, topic_of
from tests.broker.support.numbers import attempt, end_offset
from tests.broker.support.seen import bytes_in, gauge

TOTAL, OWN = "topics.total.bytes.in.per.sec.threshold", "topics.bytes.in.per.sec.threshold"
SETTINGS: Final = {TOTAL: "3M", OWN: "important:1500K", "static.excluded.principal.name.list": "User:root"}
SHARE: Final = 750_000  # bytes/s of modest and of greedy
USERS: Final = {"alice": "a", "root": "r"}
#: Slightly less than each topic may get: Kafka's meters begin with the first 5 s, in which a late client catches up.
KEPT: Final = {"important": 1_400_000, "modest": 700_000}
OFFERS: Final = KEPT | {"greedy": 20_000_000}
PERIOD: Final = 30.0  # seconds
LONG: Final = 240.0  # seconds; only a test that fails waits so long


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with callback_node(tmp_path_factory.mktemp("node"), SETTINGS, users=USERS, properties=FENCE) as node:
        for topic in OFFERS:
            create_topic(node, topic)
        yield node
        assert "Unexpected error" not in node.log_text()


def topics(node: KafkaNode, attribute: str) -> float:
    return gauge(node, "TopicQuotas", attribute)


def topics_over(node: KafkaNode) -> list[str]:
    return list(state_now(node).topics_over)


@pytest.mark.proves("v1.total-threshold", "v1.topic-threshold", "v1.one-minute-rate", "v1.dropped")
@pytest.mark.proves("v1.measured-in-log", "v1.logged", "kip-13.topic-quotas-rejected", "kip-13.error-after-delay")
def test_a_greedy_topic_gets_its_share_the_others_keep_their_rates_and_nothing_is_lost(node: KafkaNode) -> None:
    # The queue is short: its records are in flight when a topic is turned back, and a late client sends all at once.
    idempotent = {"enable.idempotence": True, "queue.buffering.max.kbytes": 256}
    loads = {
        topic: ProducerLoad(node.client_config(client_id=topic) | idempotent, topic, rate=rate)
        for topic, rate in OFFERS.items()
    }
    with ExitStack() as running:
        for load in loads.values():
            running.enter_context(load)
        eventually(lambda: topics_over(node) == ["greedy"], on_timeout=lambda: str(topics_over(node)))
        eventually(lambda: topics(node, "Share") == SHARE, what="clients have written to modest, too")
        # At first greedy exceeded its share, before the one-minute mean showed this.
        owing = bytes_in(node, "greedy")
        eventually(lambda: bytes_in(node, "greedy") > owing + SHARE, LONG, "greedy is let in again")
        wait_for_topic_rates(node)
        assert topics(node, "Rejections") > 20
        with changed(node, {TOTAL: "1G"}):
            assert {topic: load.drain() for topic, load in loads.items()} == dict.fromkeys(OFFERS, 0)
    assert [error for load in loads.values() for error in load.errors] == []
    for topic, load in loads.items():
        appended = bytes_in(node, topic)
        assert load.meter.bytes <= appended <= 1.01 * load.meter.bytes, "turned back requests never count"
    lines = [line for line in node.log_text().splitlines() if "were turned back" in line]
    assert 1 <= len(lines) <= 5, "the log has one line a minute, not one for each request"
    for line in lines:
        assert "Produce requests to 1 topic(s) were" in line, "other topics are never turned back"
        assert "[greedy (" in line
        assert "bytes/s, 750,000 are expected" in line


def wait_for_topic_rates(node: KafkaNode) -> None:
    """Waits until over the last PERIOD greedy has the rest of the total, and the others keep their mean bytes/s."""
    begin = time.monotonic()
    samples: list[tuple[float, dict[str, int]]] = []

    def rates_are_met() -> bool:
        now = time.monotonic()
        samples.append((now, {topic: bytes_in(node, topic) for topic in OFFERS}))
        assert now >= begin + PERIOD, "a period must pass first"
        since, before = [sample for sample in samples if sample[0] <= now - PERIOD][-1]
        rates = {topic: (samples[-1][1][topic] - before[topic]) / (now - since) for topic in OFFERS}
        assert sum(rates.values()) == pytest.approx(3_000_000, rel=0.1)
        assert rates.pop("greedy") > 0.85 * SHARE
        assert rates == pytest.approx(KEPT, rel=0.15)
        return True

    eventually(rates_are_met, LONG, poll=0.5)


@pytest.mark.long
@pytest.mark.proves("v1.where")
def test_a_topic_within_its_share_keeps_its_rate_packed_by_kafkas_producer_with_a_greedy_one(node: KafkaNode) -> None:
    # The buffer is small, because at the end the producer sends its content at the greedy topic's share.
    own = {"acks": "all", "buffer.memory": "8000000"}
    config = {"bootstrap.servers": node.bootstrap, "client.id": "mixed", **own}
    offers, seconds = {"modest": 400_000, "greedy": 12_000_000}, 20
    before = topics(node, "Rejections")
    with ProducerLoad(node.client_config(client_id="important"), "important", rate=OFFERS["important"]):
        found: dict[str, Any] = Helper(node.version).ask("produce-mixed", seconds, offers, 1000, config, timeout=300)
    assert topics(node, "Rejections") > before + 20
    modest, greedy = found["modest"], found["greedy"]
    assert modest["in-time"] > 0.75 * seconds * offers["modest"], "records that wait for a retry may come late"
    assert modest["longest-ms"] < 30_000
    assert modest["failed"] == greedy["failed"] == 0
    assert (modest["delivered"], greedy["delivered"]) == (modest["sent"], greedy["sent"])


# ---- with thresholds so low that one record exceeds them ----


@pytest.fixture
def full(node: KafkaNode, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic above its threshold, on a broker above its total."""
    name = topic_of(node, request)
    fill_topic(node.client_config("root", "filler"), name, 1_000_000)
    alice = node.client_config("alice", "a")
    alter_broker_config(node, {PREFIX + TOTAL: "1000", PREFIX + OWN: f"{name}:1"})
    eventually(lambda: attempt(alice, name) == "NOT_ENOUGH_REPLICAS" and name in topics_over(node))
    yield name
    alter_broker_config(node, dict.fromkeys((PREFIX + TOTAL, PREFIX + OWN), None))
    eventually(lambda: attempt(alice, name) is None)


@pytest.mark.proves("v1.exempt", "v1.where")
def test_exempt_clients_write_on_and_others_to_other_topics_and_what_is_turned_back_is_counted(
    node: KafkaNode, full: str
) -> None:
    end, before = end_offset(node, full), topics(node, "Rejections")
    assert attempt(node.client_config("alice", "a"), full) == "NOT_ENOUGH_REPLICAS"
    assert end_offset(node, full) == end
    assert topics(node, "Rejections") == before + 1
    assert attempt(node.client_config("root", "a"), full) is None

    create_topic(node, "quiet")
    own = {"message.send.max.retries": 0, "linger.ms": 50, "enable.idempotence": False}
    producer = Producer(node.client_config("alice", "both") | own)
    outcomes: dict[str, set[KafkaError | str | None]] = {full: set(), "quiet": set()}

    def note(error: KafkaError | None, message: Message) -> None:
        outcomes[str(message.topic())].add(error and error.name())

    for topic in (full, "quiet") * 3:
        producer.produce(topic, "one", partition=0, on_delivery=note)
    assert producer.flush(120) == 0
    assert outcomes == {full: {"NOT_ENOUGH_REPLICAS"}, "quiet": {None}}, "librdkafka sends one topic in each request"


@pytest.mark.proves("v1.exempt")
def test_all_topics_that_kafka_calls_its_own_are_spared() -> None:
    (jar,) = broker_jars().glob("kafka-clients-*.jar")
    with ZipFile(jar) as archive:
        names = re.findall(rb"__[a-z_]+", archive.read("org/apache/kafka/common/internals/Topic.class"))
    assert b"__consumer_offsets" in names
    assert {name.decode() for name in names} == set(records.KAFKAS_OWN) - {records.TIERING}


@pytest.mark.proves("v1.dropped")
@pytest.mark.parametrize("error", ["POLICY_VIOLATION", "THROTTLING_QUOTA_EXCEEDED"])
def test_the_error_of_turned_back_requests_can_be_chosen(node: KafkaNode, full: str, error: str) -> None:
    alice = node.client_config("alice", "a")
    with changed(node, {"topics.reject.error": error}):
        eventually(lambda: attempt(alice, full) == error)
    eventually(lambda: attempt(alice, full) == "NOT_ENOUGH_REPLICAS")


@pytest.mark.proves("v1.error-meter", "v1.measured-in-log", "v1.no-meter-by-topic")
def test_what_is_too_large_is_metered_by_itself_and_is_no_bytes_in(node: KafkaNode) -> None:
    create_topic(node, "small-records", config={"max.message.bytes": "10"})
    before = topics(node, "FailedBytes")
    assert attempt(node.client_config("alice", "a"), "small-records") == "MSG_SIZE_TOO_LARGE"
    meter = "kafka.server:type=BrokerTopicMetrics,name=BytesRejectedPerSec,topic=small-records"
    rejected = Jmx(node).get(meter, "Count")
    assert topics(node, "FailedBytes") == before + rejected
    assert rejected > 10
    assert bytes_in(node, "small-records") == 0


@pytest.mark.proves("v1.sum", "v1.recomputed", "v1.total-threshold")
def test_thresholds_change_live_and_a_sum_above_the_total_is_an_error_that_changes_nothing(node: KafkaNode) -> None:
    for topic in ("one", "two"):
        create_topic(node, topic)
        assert attempt(node.client_config("alice", "a"), topic) is None
    default = ("--alter", "--entity-type", "brokers", "--entity-default", "--add-config")
    kafka_configs(node, *default, f"{PREFIX}{TOTAL}=3M,{PREFIX}{OWN}=[one:1M,absent:500K]")
    count = sum(name not in ("one", "absent") for name in metered(node))
    eventually(lambda: topics(node, "Share") == pytest.approx(1_500_000 / count))
    with pytest.raises(HelperError, match="3,500,000 bytes/s together, above the 3,000,000"):
        alter_broker_config(node, {PREFIX + OWN: "one:3M,absent:500K"})
    with pytest.raises(HelperError, match=r"set topics\.total"):
        alter_broker_config(node, {PREFIX + TOTAL: "unlimited"})
    assert topics(node, "Threshold") == 3_000_000
    assert topics(node, "Share") == pytest.approx(1_500_000 / count)
    create_topic(node, "three")
    assert attempt(node.client_config("alice", "a"), "three") is None
    eventually(lambda: topics(node, "Share") == pytest.approx(1_500_000 / (count + 1)))
    alter_broker_config(node, {PREFIX + TOTAL: None, PREFIX + OWN: None})
    eventually(lambda: topics(node, "Threshold") == 3_000_000)


def metered(node: KafkaNode) -> list[str]:
    """The topics that have a meter of bytes in and may be turned back."""
    beans = Jmx(node).query("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=*")
    names = [bean.partition("topic=")[2] for bean in beans]
    spared = {*records.KAFKAS_OWN, *(topic.name for topic in records.TOPICS)}
    return [name for name in names if name not in spared]
