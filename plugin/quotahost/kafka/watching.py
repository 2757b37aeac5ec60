"""Asks all brokers of a cluster for looks, and reads them; ``quotahost top --bootstrap`` shows them.

It writes a ``quotahost.records.watch.Watch`` to the brokers, and reads what their task ``publish-usage`` answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from quotahost.errors import QuotahostError
from quotahost.kafka.reach import reach
from quotahost.records.watch import KEY, Watch, encode

__all__ = ["NotWatched", "Watching"]

_WAIT: Final = 10.0  # seconds
_BATCH: Final = 500  # records
#: By it the fence knows this client where nobody authenticates: one watches above all while producers are stopped.
_CLIENT_ID: Final = "quotahost-top"
_OURS: Final[dict[str, Any]] = {"client.id": _CLIENT_ID, "log_level": 0, "allow.auto.create.topics": False}
_ABSENT: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
_DENIED: Final = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
_IN_A_PAUSE: Final = (
    "where producers are stopped, only a principal of static.excluded.principal.name.list may watch; else see whether "
    "the cluster is in service"
)
_TURNED_BACK: Final = {KafkaError.POLICY_VIOLATION, KafkaError._MSG_TIMED_OUT}


class NotWatched(QuotahostError):
    """The brokers can't be asked; the message's second line is what to do about it."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str) -> None:
        """Make the message of the two."""
        super().__init__(f"{problem}\n  -> {remedy}")


class Watching:
    """A connection to a cluster whose brokers are watched. One thread reads; any may ask."""

    def __init__(self, config: Mapping[str, str], watch_topic: str, looks_topic: str) -> None:
        """Connect.

        Args:
            config: librdkafka's, with ``bootstrap.servers``; it may contain secrets, of which nothing is shown.
            watch_topic: the topic to which the watch is written.
            looks_topic: the topic in which the brokers answer.

        Raises:
            NoAnswer: no broker answers, or the configuration is wrong (``quotahost.kafka.reach``).
            NotWatched: a topic is absent, or this client may not use it.
        """
        self._topic, self._looks = watch_topic, looks_topic
        self._admin = reach({**_OURS, **config}, _WAIT)
        options: dict[str, Any] = {**_OURS, **config}
        self._producer = Producer(options | {"acks": 1, "linger.ms": 0, "message.timeout.ms": int(_WAIT * 1000)})
        # librdkafka demands the name of a group, which is never joined (quotahost.records.topics.GROUPS).
        self._consumer = Consumer(options | {"group.id": _CLIENT_ID, "enable.auto.commit": False})
        self._failure: KafkaError | None = None
        self._partitions(watch_topic, "Write")
        partitions = self._partitions(looks_topic, "Read")
        # From the end: what stands there was for others. The broker is asked for the end now, before anybody answers.
        ends = [TopicPartition(looks_topic, each, self._end(looks_topic, each)) for each in partitions]
        self._consumer.assign(ends)

    def brokers(self) -> frozenset[str]:
        """The ids of the brokers that are alive.

        Raises:
            NotWatched: no broker answers.
        """
        try:
            return frozenset(map(str, self._admin.list_topics(self._topic, timeout=_WAIT).brokers))
        except KafkaException as failure:
            problem = f"no broker answers: {failure.args[0].str()}"
            raise NotWatched(problem, "see whether the cluster is in service") from None

    def ask(self, watch: Watch) -> None:
        """Write it; returns once it is written.

        Raises:
            NotWatched: it can't be written.
        """
        self._failure = None
        self._producer.produce(self._topic, encode(watch), KEY, on_delivery=self._delivered)
        left = self._producer.flush(_WAIT)
        if self._failure is not None:
            raise self._refused(self._failure, self._topic, "Write")
        if left:
            raise NotWatched("no broker takes the watch in time", _IN_A_PAUSE)

    def read(self, seconds: float) -> Iterator[tuple[bytes | None, bytes]]:
        """Keys and values of the looks that have arrived, after this many seconds at most.

        Raises:
            NotWatched: this client may no longer read the topic, or it is gone.
        """
        end = time.monotonic() + seconds
        while messages := self._consumer.consume(_BATCH, max(0.0, end - time.monotonic())):
            for message in messages:
                error = message.error()
                if error is not None and error.code() in _ABSENT | _DENIED:
                    raise self._refused(error, self._looks, "Read")
                value = message.value()
                if error is None and value is not None:
                    yield message.key(), value

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._failure = error

    def _partitions(self, topic: str, right: str) -> list[int]:
        try:
            found = self._admin.list_topics(topic, timeout=_WAIT).topics[topic]
        except KafkaException as failure:
            raise self._refused(failure.args[0], topic, right) from None
        if found.error is not None:
            raise self._refused(found.error, topic, right)
        return list(found.partitions)

    def _end(self, topic: str, partition: int) -> int:
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_WAIT)[1]
        except KafkaException:
            return OFFSET_END

    def _refused(self, error: KafkaError, topic: str, right: str) -> NotWatched:
        if error.code() in _ABSENT:
            return NotWatched(
                f"there is no topic {topic}: no broker answers those who watch",
                "run the task publish-usage on the brokers (client.quota.callback.tasks), or name the topics "
                "by --watch-topic and --looks-topic",
            )
        if error.code() in _DENIED:
            return NotWatched(
                f"this client may not {right} {topic}", "the rights of docs/security.md, or --client-config FILE"
            )
        if error.code() in _TURNED_BACK:
            return NotWatched(f"the brokers take no watch ({error.str()})", _IN_A_PAUSE)
        return NotWatched(f"{topic}: {error.str()}", "see whether the cluster is in service")
