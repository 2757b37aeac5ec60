"""The topics of a pipeline under test, as producers and readers see them."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from quotahost.records import usage
from quotahost.records.cluster_volumes import ClusterRecord, decode
from quotahost.records.topics import PREFIX, USAGE
from quotahost.records.usage import Usage, Used
from tests.pipeline.records import snapshot

SNAPSHOTS: Final = "__quotahost_snapshots"
CLUSTER_VOLUMES: Final = "__quotahost_cluster_volumes"
REFUSED: Final = "__quotahost_refused"


class Snapshots:
    def __init__(self, bootstrap: str, prefix: str = PREFIX) -> None:
        self._prefix = prefix
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def publish(self, broker: str, volumes: Sequence[dict[str, Any]], **more: Any) -> None:
        self.write(broker, snapshot(broker, datetime.now(UTC), volumes, **more))

    def use(self, broker: str, *used: Used, cluster: str = "") -> None:
        self.write(broker, usage.encode(Usage(broker, datetime.now(UTC), used, cluster)), USAGE.name)
        self.flush()

    def remove(self, broker: str) -> None:
        self.write(broker, None)

    def write(self, key: str, value: bytes | None, topic: str = SNAPSHOTS, dated: float = 0) -> None:
        """Writes a record; if the topic has CreateTime, the record's time is ``dated`` seconds after now."""
        topic = self._prefix + topic.removeprefix(PREFIX)
        self._producer.produce(topic, key=key, value=value, timestamp=int((time.time() + dated) * 1000))
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0


def read_all(bootstrap: str, topic: str) -> list[Message]:
    """Every record that is in a topic of one partition; none if there is no such topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Message] = []
    try:
        while (message := consumer.poll(120)) is not None:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            elif error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
                return []
    finally:
        consumer.close()
    raise TimeoutError(f"the end of {topic} was not reached")


def published(bootstrap: str, topic: str = CLUSTER_VOLUMES) -> list[ClusterRecord]:
    found = read_all(bootstrap, topic)
    return [decode(message.key(), message.value() or b"") for message in found]


def latest(bootstrap: str) -> ClusterRecord | None:
    """The record that a reader keeps; a record whose run is more than an hour ahead doesn't count."""
    now = (time.time() + 3600) * 1000
    taken = (each for each in published(bootstrap) if each.run < now)
    return max(taken, key=lambda each: (each.run, each.sequence), default=None)


def dead_letters(bootstrap: str) -> list[dict[str, str]]:
    messages: list[Any] = [*read_all(bootstrap, REFUSED)]  # the headers' type stubs allow more than there is
    return [
        {"id": (message.key() or b"").decode(), "value": (message.value() or b"").decode(errors="replace")}
        | {name: (value or b"").decode() for name, value in message.headers() or ()}
        for message in messages
    ]
