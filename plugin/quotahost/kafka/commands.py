"""The commands' access to quotahost's topics: read one to its end, write to it, and watch the brokers.

1. ``quotahost quotas`` reads a compacted topic to its end, and writes records to it (:class:`CompactedTopic`).
2. ``quotahost top`` writes to the watch topic, and reads the looks that brokers then publish (:class:`Watching`).

Kafka's errors become errors that name the topic, the missing right or property, and a remedy.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from quotahost.base.errors import Unusable
from quotahost.kafka.admin import NotMade, ensure_compacted
from quotahost.kafka.client import ABSENT, ASKING, DENIED, NoAnswer, connect, consumer, lacked, partitions
from quotahost.records.watch import KEY, Watch, encode

_WAIT: Final = 10.0  # seconds for each answer
_DELIVERY_MS: Final = 30_000
#: If brokers don't authenticate clients, the fence lets this client.id pass: operators watch most during a PAUSE.
_WATCHER: Final = "quotahost-top"
_MAKE: Final = (
    "add publish-usage to client.quota.callback.tasks on the brokers (it creates the watch and looks topics), or name "
    "another topic"
)


def _failed(error: KafkaError, topic: str, right: str, config: Mapping[str, Any]) -> Unusable:
    """The reason, by Kafka's error, why a topic can't be used; its use needs ``right``, named as in ACLs."""
    if error.code() in ABSENT:
        return Unusable(f"there is no topic {topic}", _MAKE)
    if words := lacked(error, right, topic, config):
        return Unusable(*words)
    if error.code() < 0:  # librdkafka's own error: no broker answered
        return Unusable(f"no broker answers for {topic}: {error.str()}", "check that the brokers run and are reachable")
    return Unusable(f"{topic} can't be used: {error.str()}", "check its configuration (quotahost doctor --against)")


def _options(config: Mapping[str, str], client_id: str) -> dict[str, Any]:
    return {**ASKING, "allow.auto.create.topics": False, **config, "client.id": client_id}


class CompactedTopic:
    """A compacted topic of a running cluster."""

    def __init__(self, config: Mapping[str, str], topic: str, client_id: str) -> None:
        """``config`` is librdkafka's. If brokers don't authenticate, the fence knows this client by ``client_id``."""
        self.name = topic
        self._config = _options(config, client_id)

    def read(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """All keys and values up to the present end; none if the topic is absent. Raises Unusable or NoAnswer."""
        try:
            numbers = partitions(connect(self._config, _WAIT, self.name), self.name, _WAIT)
        except KafkaException as failure:
            if failure.args[0].code() in ABSENT:
                return
            raise _failed(failure.args[0], self.name, "Read", self._config) from None
        # At the end of the topic a fetch would wait for 0.5 s, by default.
        reader = consumer(self._config | {"fetch.wait.max.ms": 10}, self._config["client.id"])
        try:
            reader.assign([TopicPartition(self.name, number, OFFSET_BEGINNING) for number in numbers])
            yield from self._to_the_end(reader, set(numbers))
        finally:
            reader.close()

    def _to_the_end(self, reader: Consumer, unread: set[int]) -> Iterator[tuple[bytes | None, bytes | None]]:
        while unread:
            # One record at a time: consume() would wait its whole time for as many records as it is asked for.
            message = reader.poll(_WAIT)
            if message is None:
                raise Unusable(f"topic {self.name} can't be read: no record arrived within {_WAIT:g} s", "try again")
            error: Any = message.error()
            if error is None:
                yield message.key(), message.value()
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition() or 0)
            elif error.code() in ABSENT | DENIED:
                raise _failed(error, self.name, "Read", self._config)

    def write(self, records: Mapping[bytes, bytes | None]) -> dict[bytes, str]:
        """Write the values by key (None is a tombstone), and create the topic if it is absent.

        Returns when each value is on all in-sync replicas or has failed: for each failed key the reason. Raises
        Unusable if the topic is absent and can't be created, and NoAnswer as ``read`` does.
        """
        if not records:
            return {}
        try:
            admin = connect(self._config, _WAIT, self.name)
            ensure_compacted(admin, self.name)
        except KafkaException as failure:
            raise _failed(
                failure.args[0], self.name, "Create" if isinstance(failure, NotMade) else "Write", self._config
            ) from None
        producer = Producer(self._config | {"acks": "all", "linger.ms": 5, "delivery.timeout.ms": _DELIVERY_MS})
        failed: dict[bytes, str] = {}

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                failed[message.key() or b""] = str(_failed(error, self.name, "Write", self._config))

        for key, value in records.items():
            # librdkafka's queue holds 100,000 records; delivered ones make room at a poll.
            while True:
                try:
                    # Always partition 0: if partitions are added, a key maps to another, and its old record could win.
                    producer.produce(self.name, key=key, value=value, partition=0, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.5)
        producer.flush(2 * _DELIVERY_MS / 1000)
        return failed


class Watching:
    """A connection to a cluster whose brokers are watched. One thread calls ``read``; any thread may call ``ask``."""

    def __init__(self, config: Mapping[str, str], watch_topic: str, looks_topic: str) -> None:
        """Connect. Raises Unusable if no broker answers, or if a topic is absent or denied."""
        self._topic, self._looks = watch_topic, looks_topic
        self._options = options = _options(config, config.get("client.id", _WATCHER))
        try:
            self._admin = connect(options, _WAIT, watch_topic)
        except NoAnswer as problem:
            where = options["bootstrap.servers"]
            raise Unusable(f"{where} doesn't answer: {problem}", "another listener, or --client-config FILE") from None
        self._producer = Producer(options | {"acks": 1, "linger.ms": 0, "message.timeout.ms": int(_WAIT * 1000)})
        self._partitions(watch_topic, "Write")
        # The group is not named after the operator's client.id: the right Describe is granted on groups of this name.
        self._consumer = consumer(options, _WATCHER, "latest")
        numbers = self._partitions(looks_topic, "Read")
        # Only new records count, so the end offset is read before any broker answers.
        self._consumer.assign([TopicPartition(looks_topic, number, self._end(number)) for number in numbers])

    def brokers(self) -> tuple[frozenset[str], str]:
        """The ids of the live brokers, and the cluster's id. Raises Unusable if no broker answers."""
        try:
            found = self._admin.list_topics(self._topic, timeout=_WAIT)
            return frozenset(map(str, found.brokers)), found.cluster_id or ""
        except KafkaException as failure:
            raise _failed(failure.args[0], self._topic, "Write", self._options) from None

    def ask(self, watch: Watch, wait: float = 2 * _WAIT) -> None:
        """Write the watch. Returns when it is written, or after ``wait`` s. Raises Unusable if the write fails."""
        told: list[KafkaError | None] = []  # None if the record is written
        self._producer.produce(self._topic, encode(watch), KEY, on_delivery=lambda error, _: told.append(error))
        # If no broker takes the record, its error comes after _WAIT.
        self._producer.flush(wait)
        for error in filter(None, told):
            raise _failed(error, self._topic, "Write", self._options)

    def read(self, seconds: float) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of the looks of the next ``seconds``. Raises Unusable if the topic is denied or gone."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for message in self._consumer.consume(500, left):
                error = message.error()
                if error is not None and error.code() in ABSENT | DENIED:
                    raise _failed(error, self._looks, "Read", self._options)
                value = message.value()
                if error is None and value is not None:
                    yield message.key() or b"", value

    def _partitions(self, topic: str, right: str) -> list[int]:
        try:
            return partitions(self._admin, topic, _WAIT)
        except KafkaException as failure:
            raise _failed(failure.args[0], topic, right, self._options) from None

    def _end(self, partition: int) -> int:
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(self._looks, partition), timeout=_WAIT)[1]
        except KafkaException:
            return OFFSET_END
