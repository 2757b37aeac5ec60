"""Sends single records and transactions and reads topics, so tests see that no record is lost or out of order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually
from tests.broker.support.seen import gauge

T = TypeVar("T")

#: Errors after a change of the partition's leader; they say nothing about the record.
_MOVING: Final = {"LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"}


def begun(config: dict[str, Any], topic: str) -> Producer:
    """A transaction that has written a record, "before", to partition 0."""
    producer = Producer(config | {"transactional.id": topic, "log_level": 4})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, "before", partition=0)
    producer.flush(60)
    return producer


def attempt(config: dict[str, Any], topic: str, partition: int = 0) -> str | None:
    """Sends one record on a connection of its own; returns the error's name, or None if delivered.

    The record is sent again only if the broker that was asked no longer leads the partition.
    """
    answers: list[str | None] = []

    def answered() -> bool:
        answers.append(_attempt(config, topic, partition))
        return answers[-1] not in _MOVING

    eventually(answered, what=f"the leader of {topic}-{partition} has answered")
    return answers[-1]


def _attempt(config: dict[str, Any], topic: str, partition: int) -> str | None:
    outcome: list[KafkaError | None] = []
    own = {"message.send.max.retries": 0, "message.timeout.ms": 40_000, "log_level": 0}
    producer = Producer(own | config)
    producer.produce(topic, "one", partition=partition, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(60)
    (error,) = outcome
    return None if error is None else error.name()


def end_offset(node: KafkaNode, topic: str, partition: int = 0) -> int:
    """The end offset of a partition, also of one whose leader has just changed."""
    at = TopicPartition(topic, partition)

    def known() -> tuple[int, int]:
        return _ask(node, lambda consumer: consumer.get_watermark_offsets(at))

    return eventually(known, what=f"the end offset of {topic}-{partition} is known")[1]


def wait_until_turned_back(*nodes: KafkaNode, more: int = 5) -> None:
    """Waits until the fences of these nodes have together turned back this many more requests."""

    def rejections() -> float:
        return sum(gauge(node, "Fence", "Rejections") for node in nodes)

    before = rejections()
    eventually(lambda: rejections() >= before + more, what=f"the fences turn back {more} more requests")


def stopped_at(node: KafkaNode, *topics: str) -> list[int]:
    """The end offsets at which these topics stay while a closed fence turns requests back."""

    def ends() -> list[int]:
        return [end_offset(node, topic) for topic in topics]

    stopped = _settled(ends, node)
    wait_until_turned_back(node)
    assert ends() == stopped
    return stopped


def appended(cluster: Cluster) -> list[int]:
    """The end offsets of the three partitions of topic t."""
    return [end_offset(cluster.brokers[1], "t", partition) for partition in range(3)]


def settled_ends(cluster: Cluster) -> list[int]:
    """The end offsets of topic t after the requests in flight when the fences closed; a producer must go on."""
    return _settled(lambda: appended(cluster), *cluster.brokers)


def _settled(ends: Callable[[], list[int]], *nodes: KafkaNode) -> list[int]:
    """The ends once they stay while requests are turned back: requests that passed a fence are appended by then."""

    def stay() -> list[int] | None:
        before = ends()
        wait_until_turned_back(*nodes)
        return before if ends() == before else None

    return eventually(stay, what="the end offsets stay the same")


def values(node: KafkaNode, topic: str) -> list[str]:
    """The values in partition 0 in order, including those of committed transactions."""
    return [value.decode() for _, value in records(node, topic)]


def records(node: KafkaNode, topic: str) -> list[tuple[bytes, bytes]]:
    """The keys and values in partition 0, in order."""

    def read(consumer: Consumer) -> list[tuple[bytes, bytes]]:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: list[tuple[bytes, bytes]] = []
        while (message := consumer.poll(60)) is not None:
            error = message.error()
            if error is None:
                found.append((message.key() or b"", message.value() or b""))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
        raise TimeoutError(f"the end of {topic} was not reached after {len(found)} records")

    return _ask(node, read)


def _ask(node: KafkaNode, question: Callable[[Consumer], T]) -> T:
    own = {"group.id": "harness-reader", "enable.partition.eof": True, "isolation.level": "read_committed"}
    # An empty fetch shows the end. If a consumer waits longer than the time between records, no fetch is empty.
    own |= {"enable.auto.commit": False, "fetch.wait.max.ms": 10}
    consumer = Consumer(node.client_config(client_id="harness-reader") | own)
    try:
        return question(consumer)
    finally:
        consumer.close()
