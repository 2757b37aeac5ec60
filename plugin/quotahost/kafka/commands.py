"""What the commands do with quotahost's topics: read one to its end, write to it, watch the brokers."""

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
_SILENCE: Final = 10.0  # seconds, in which who is watched writes several looks
#: By it the fence knows this client where nobody authenticates: one watches above all while producers are stopped.
_WATCHER: Final = "quotahost-top"
_MAKE: Final = (
    "run the task publish-usage on the brokers (client.quota.callback.tasks), which makes those of who watches; or "
    "name another topic"
)


def _failed(error: KafkaError, topic: str, right: str, config: Mapping[str, Any]) -> Unusable:
    """Why the topic can't be used, by Kafka's error; ``right`` is the one that its use needs, as ACLs name it."""
    if error.code() in ABSENT:
        return Unusable(f"there is no topic {topic}", _MAKE)
    if words := lacked(error, right, topic, config):
        return Unusable(*words)
    if error.code() < 0:  # librdkafka's own: it had no answer
        return Unusable(f"no broker answers for {topic}: {error.str()}", "see whether it is in service")
    return Unusable(f"{topic} can't be used: {error.str()}", "see how it is kept (quotahost doctor --against)")


def _options(config: Mapping[str, str], client_id: str) -> dict[str, Any]:
    return {**ASKING, "allow.auto.create.topics": False, **config, "client.id": client_id}


class CompactedTopic:
    """A compacted topic of a running cluster."""

    def __init__(self, config: Mapping[str, str], topic: str, client_id: str) -> None:
        """By the ``client_id`` the fence knows this client where nobody authenticates. ``config`` is librdkafka's."""
        self.name = topic
        self._config = _options(config, client_id)

    def read(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """All keys and values, to the present end; none without a topic. Raises Unusable, or NoAnswer."""
        try:
            numbers = partitions(connect(self._config, _WAIT, self.name), self.name, _WAIT)
        except KafkaException as failure:
            if failure.args[0].code() in ABSENT:
                return
            raise _failed(failure.args[0], self.name, "Read", self._config) from None
        reader = consumer(self._config, self._config["client.id"])
        try:
            reader.assign([TopicPartition(self.name, number, OFFSET_BEGINNING) for number in numbers])
            yield from self._to_the_end(reader, set(numbers))
        finally:
            reader.close()

    def _to_the_end(self, reader: Consumer, unread: set[int]) -> Iterator[tuple[bytes | None, bytes | None]]:
        came_at = time.monotonic()
        while unread:
            messages = reader.consume(10_000, 0.5)
            if messages:
                came_at = time.monotonic()
            elif time.monotonic() - came_at > _WAIT:
                raise Unusable(f"topic {self.name} can't be read: nothing came within {_WAIT:g} s", "try again")
            for message in messages:
                error: Any = message.error()
                if error is None:
                    yield message.key(), message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(message.partition() or 0)
                elif error.code() in ABSENT | DENIED:
                    raise _failed(error, self.name, "Read", self._config)

    def write(self, records: Mapping[bytes, bytes | None]) -> dict[bytes, str]:
        """Write values by key (None is a tombstone), and make the topic if it is absent.

        Returns once each value is on all replicas in sync, or has failed: by key the reason of those that were not
        written. Raises Unusable if the topic is absent and can't be made; NoAnswer as read.
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
            # librdkafka's queue holds 100,000 records; those that were delivered make room.
            while True:
                try:
                    # By its key a record would go elsewhere once somebody adds partitions, and the old one come back.
                    producer.produce(self.name, key=key, value=value, partition=0, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.5)
        producer.flush(2 * _DELIVERY_MS / 1000)
        return failed


class Watching:
    """A connection to a cluster whose brokers are watched. One thread reads; any may ask."""

    def __init__(self, config: Mapping[str, str], watch_topic: str, looks_topic: str) -> None:
        """Raises Unusable if no broker answers, a topic is absent, or this client may not use it."""
        self._topic, self._looks, self._heard_at = watch_topic, looks_topic, time.monotonic()
        self._options = options = _options(config, config.get("client.id", _WATCHER))
        try:
            self._admin = connect(options, _WAIT, watch_topic)
        except NoAnswer as problem:
            where = options["bootstrap.servers"]
            raise Unusable(f"{where} doesn't answer: {problem}", "another listener, or --client-config FILE") from None
        self._producer = Producer(options | {"acks": 1, "linger.ms": 0, "message.timeout.ms": int(_WAIT * 1000)})
        self._partitions(watch_topic, "Write")
        self._begin()

    def brokers(self) -> frozenset[str]:
        """The ids of the brokers that are alive. Raises Unusable if no broker answers."""
        try:
            return frozenset(map(str, self._admin.list_topics(self._topic, timeout=_WAIT).brokers))
        except KafkaException as failure:
            raise _failed(failure.args[0], self._topic, "Write", self._options) from None

    def ask(self, watch: Watch, wait: float = 2 * _WAIT) -> None:
        """Write the watch; returns once it is written, or after ``wait`` s. Raises Unusable if it can't be."""
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: object) -> None:
            if error is not None:
                failures.append(error)

        self._producer.produce(self._topic, encode(watch), KEY, on_delivery=delivered)
        # The error of a record that nobody takes comes after _WAIT.
        self._producer.flush(wait)
        if failures:
            raise _failed(failures[0], self._topic, "Write", self._options)

    def read(self, seconds: float) -> Mapping[bytes, bytes]:
        """The newest look of each key, of those that come within so many seconds.

        Raises Unusable if the topic is denied or gone.
        """
        newest: dict[bytes, bytes] = {}
        if time.monotonic() - self._heard_at > _SILENCE:
            # Once, after a broker's restart, librdkafka read no further and reported no error: another client begins.
            self._consumer.close()
            self._begin()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for message in self._consumer.consume(500, left):
                error = message.error()
                if error is not None and error.code() in ABSENT | DENIED:
                    raise _failed(error, self._looks, "Read", self._options)
                value = message.value()
                if error is None and value is not None:
                    newest[message.key() or b""] = value
                    self._heard_at = time.monotonic()
        return newest

    def _begin(self) -> None:
        # Whatever client.id an operator has, the right to Describe is for groups of this name.
        self._consumer = consumer(self._options, _WATCHER, "latest")
        numbers = self._partitions(self._looks, "Read")
        # What comes from now on: the broker is asked for the end now, before anybody answers.
        self._consumer.assign([TopicPartition(self._looks, number, self._end(number)) for number in numbers])
        self._heard_at = time.monotonic()

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
