"""A Kafka Streams application with exactly_once_v2 meets a PAUSE in which Kafka aborts its transaction."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jars import DEFAULT_VERSION, broker_jars, maven_jar
from harness.java.jdk import class_path, program
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.kafka.properties import login_jaas, write_properties
from harness.plugin import FENCE
from harness.system.process import LoggedProcess
from harness.system.waiting import eventually
from tests.broker.support.node import FIXED, callback_node, set_factor
from tests.broker.support.numbers import end_offset, records, stopped_at, values

pytestmark = pytest.mark.long

PROGRAM: Final = Path(__file__).with_name("CountingStream.java")
USERS: Final = {"streams": "s", "feeder": "f"}
ABORTS: Final = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
APPLICATION: Final = {
    "application.id": "counting",
    "processing.guarantee": "exactly_once_v2",
    "replication.factor": "1",
    "consumer.auto.offset.reset": "earliest",
    # A commit ends the transaction, and the PAUSE must begin between two commits.
    "commit.interval.ms": "2000",
    "producer.transaction.timeout.ms": "5000",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[KafkaNode]:
    settings = FIXED | {"static.excluded.principal.name.list": "User:feeder"}
    properties = QUICK_QUOTAS | FENCE | ABORTS
    with callback_node(tmp_path / "node", settings, users=USERS, properties=properties) as node:
        for topic in ("in", "copy", "counts"):
            create_topic(node, topic)
        yield node


@pytest.fixture
def application(node: KafkaNode, tmp_path: Path) -> Iterator[LoggedProcess]:
    """The application, in a JVM of its own."""
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login["sasl.jaas.config"] = login_jaas("PLAIN", "streams", USERS["streams"])
    login["bootstrap.servers"] = node.client_config("streams")["bootstrap.servers"]
    file = tmp_path / "streams.properties"
    write_properties(file, APPLICATION | login | {"state.dir": str(tmp_path / "state")})
    jars = [maven_jar(f"org.apache.kafka:kafka-streams:{DEFAULT_VERSION}"), broker_jars()]
    process = LoggedProcess(tmp_path / "streams.log")
    command = [program("java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    process.launch_command([*command, "-cp", class_path(jars), str(PROGRAM), str(file)], dict(os.environ))
    yield process
    process.kill()


def written(node: KafkaNode, topic: str) -> int:
    """The end of partition 0 including uncommitted records, which ``end_offset`` leaves out."""
    consumer = Consumer(node.client_config() | {"group.id": "harness-reader", "isolation.level": "read_uncommitted"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1])
    finally:
        consumer.close()


def is_open(node: KafkaNode) -> bool:
    """Whether a transaction that has written to ``copy`` is still open."""
    return end_offset(node, "copy") < written(node, "copy")


@pytest.mark.proves("faults.streams")
def test_a_streams_application_loses_and_doubles_nothing_by_a_pause_and_goes_on_by_itself(
    node: KafkaNode, application: LoggedProcess
) -> None:
    config = node.client_config("feeder") | {"enable.idempotence": True}
    with ProducerLoad(config, "in", rate=500, numbered=True) as feeder:
        eventually(lambda: end_offset(node, "counts") > 0, on_timeout=lambda: application.log.tail())

        def cut_off() -> bool:
            set_factor(node, 1)
            eventually(lambda: is_open(node))
            set_factor(node, 0)
            stopped_at(node, "copy")
            return is_open(node)

        eventually(cut_off, what="a PAUSE begins within a transaction")
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
