"""Reads all that a compacted topic holds now, and writes records to it; ``quotahost quotas`` does both.

Reading goes from the beginning of each partition to where it ended when the reader came there. Writing makes the topic
if it is absent, and returns once every record is on all replicas in sync or has failed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from quotahost.errors import QuotahostError
from quotahost.kafka.reach import reach
from quotahost.kafka.topics import ensure_compacted

_WAIT: Final = 10.0  # seconds for each answer
_DELIVERY_MS: Final = 30_000
_BATCH: Final = 10_000  # records
_ABSENT: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
_DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}  # fmt: skip
_RIGHTS: Final = "give the principal the rights of docs/security.md"


class TopicFailed(QuotahostError):
    """The topic can't be read or made; the message says why, and what to do."""


class CompactedTopic:
    """A topic of a running cluster."""

    def __init__(self, config: Mapping[str, str], topic: str, client_id: str) -> None:
        """Nothing is connected yet.

        Args:
            config: librdkafka's, with ``bootstrap.servers``; it may contain secrets, of which nothing is shown.
            topic: its name.
            client_id: by which the fence knows this client where nobody authenticates.
        """
        self.name = topic
        self._config: dict[str, Any] = {
            "log_level": 0, "allow.auto.create.topics": False, **config, "client.id": client_id
        }  # fmt: skip

    def read(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Keys and values of all records, in their order; none where there is no topic.

        Raises:
            TopicFailed: it can't be read to its end.
            NoAnswer: no broker answers, or the configuration is wrong (``quotahost.kafka.reach``).
        """
        try:
            topic = reach(self._config, _WAIT).list_topics(self.name, timeout=_WAIT).topics[self.name]
        except KafkaException as failure:
            raise self._failed("read", failure.args[0]) from None
        if topic.error is not None:
            if topic.error.code() in _ABSENT:
                return
            raise self._failed("read", topic.error)
        # librdkafka demands the name of a group, which is never joined (quotahost.records.topics.GROUPS).
        group = {"group.id": self._config["client.id"], "enable.auto.commit": False}
        # An open transaction, of whomever, would hide all records after its first one.
        ends = {"enable.partition.eof": True, "isolation.level": "read_uncommitted"}
        consumer = Consumer(self._config | group | ends)
        try:
            consumer.assign([TopicPartition(self.name, number, OFFSET_BEGINNING) for number in topic.partitions])
            yield from self._to_the_end(consumer, set(topic.partitions))
        finally:
            consumer.close()

    def _to_the_end(self, consumer: Consumer, unread: set[int]) -> Iterator[tuple[bytes | None, bytes | None]]:
        came_at = time.monotonic()
        while unread:
            messages = consumer.consume(_BATCH, 0.5)
            if messages:
                came_at = time.monotonic()
            elif time.monotonic() - came_at > _WAIT:
                raise TopicFailed(f"topic {self.name} can't be read: nothing came within {_WAIT:g} s; try again")
            for message in messages:
                error: Any = message.error()
                if error is None:
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition() or 0)
                elif error.code() in _ABSENT | _DENIED:
                    raise self._failed("read", error)

    def write(self, records: Mapping[bytes, bytes | None]) -> dict[bytes, str]:
        """Write values by key; None is a tombstone.

        Returns:
            Of those that were not written the reason, by key.

        Raises:
            TopicFailed: the topic is absent, and can't be made.
            NoAnswer: as read.
        """
        if not records:
            return {}
        reach(self._config, _WAIT)
        try:
            ensure_compacted(self._config, self.name, 1, patient=False, gathering=False)
        except KafkaException as failure:
            raise self._failed("made", failure.args[0]) from None
        producer = Producer(self._config | {"acks": "all", "linger.ms": 5, "delivery.timeout.ms": _DELIVERY_MS})
        failed: dict[bytes, str] = {}

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed[message.key() or b""] = str(self._failed("written", error))

        for key, value in records.items():
            # librdkafka's queue holds 100,000 records; those that were delivered make room.
            while True:
                try:
                    producer.produce(self.name, key=key, value=value, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.5)
        producer.flush(2 * _DELIVERY_MS / 1000)
        return failed

    def _failed(self, what: str, error: KafkaError) -> TopicFailed:
        """Why the topic can't be read, made or written, in words."""
        if error.code() in _DENIED:
            reason = f"this client may not; {_RIGHTS}"
        elif error.code() == KafkaError._MSG_TIMED_OUT:
            reason = (
                "no broker took it in time; where producers are stopped, name this principal in "
                "static.excluded.principal.name.list"
            )
        else:
            reason = f"{error.str()}; try again"
        return TopicFailed(f"topic {self.name} can't be {what}: {reason}")
