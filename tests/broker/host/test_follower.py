"""A follower of a compacted topic on a real broker: an open transaction, a lost place and added partitions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from harness.kafka.admin import create_topic, delete_topics
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from quotahost.kafka.follower import Follower
from quotahost.testing.broker import FakeBroker
from tests.broker.support.node import topic_name
from tests.fakes.plugin_context import context

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture
def topic(node: KafkaNode, request: pytest.FixtureRequest) -> str:
    name = topic_name(request)[:100]
    create_topic(node, name)
    return name


class Reading:
    """Everything that a follower hands on: value, and whether it counts as live."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bool]] = []
        self.caught_up_times = 0

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        self.records.append((value, live))

    def caught_up(self) -> None:
        self.caught_up_times += 1


@pytest.fixture
def reading(node: KafkaNode, topic: str) -> Iterator[Reading]:
    made = Reading()
    follower = Follower(
        context(FakeBroker(client=node.client_config(client_id="f"))), topic, made.record, caught_up=made.caught_up
    )
    eventually(lambda: made.caught_up_times == 1)
    yield made
    follower.close()


def write(node: KafkaNode, topic: str, *values: str, partition: int = 0) -> None:
    producer = Producer(node.client_config(client_id="w"))
    for value in values:
        producer.produce(topic, value, key="k", partition=partition)
    assert producer.flush(30) == 0


@pytest.mark.proves("faults.transactions")
def test_an_open_transaction_hides_nothing(node: KafkaNode, topic: str, reading: Reading) -> None:
    producer = Producer(node.client_config(client_id="t") | {"transactional.id": "open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "of the transaction")
    producer.flush(30)
    write(node, topic, "after it began")
    eventually(lambda: (b"after it began", True) in reading.records)
    producer.abort_transaction(30)


def test_after_the_topic_was_made_anew_its_old_records_are_read_as_old_ones(
    node: KafkaNode, topic: str, reading: Reading
) -> None:
    write(node, topic, *["before"] * 20)
    eventually(lambda: len(reading.records) == 20)
    delete_topics(node, topic)
    admin = AdminClient(node.client_config(client_id="harness"))
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics)
    create_topic(node, topic)
    write(node, topic, "again")
    eventually(lambda: reading.records[-1][0] == b"again")
    assert reading.records[-1] == (b"again", False)


def test_records_of_a_partition_that_was_added_are_read(node: KafkaNode, topic: str, reading: Reading) -> None:
    write(node, topic, "first")
    eventually(lambda: reading.records)
    admin = AdminClient(node.client_config(client_id="harness"))
    for added in admin.create_partitions([NewPartitions(topic, 2)]).values():
        added.result(30)
    write(node, topic, "second", partition=1)
    eventually(lambda: any(value == b"second" for value, _ in reading.records))
