"""Follows a compacted topic from its beginning, whatever happens to it, on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from quotahost.api import Context
from quotahost.plugins.kafka.client import Connection, client_config

_POLL: Final = 0.2  # seconds: how soon close() is seen
_AT_ONCE: Final = 500
_RETRY: Final = 0.5  # seconds
_CLOSE_WITHIN: Final = 2.0  # seconds
_ABSENT: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
# The topic is gone, or is another one by now: begin again.
_REBUILD: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}


class Reader(Protocol):
    """Takes what the follower reads, on the follower's thread."""

    def record(self, key: bytes | None, value: bytes | None, live: bool) -> None:
        """A record; ``value`` None is a tombstone. ``live`` if it came after all that was there at first."""
        ...

    def caught_up(self) -> None:
        """All that was there has been read; called again after each new beginning."""
        ...


class Follower:
    """Reads every record of a topic, again from the beginning whenever its place in it is lost.

    No consumer group is joined and no offset kept. It waits for a broker that isn't up yet and for a topic that isn't
    there yet. After ``silence`` seconds without any record it begins again, too: somebody should have spoken.
    """

    def __init__(
        self,
        context: Context[object],
        topic: str,
        reader: Reader,
        silence: float = 60.0,
        absent: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin at once, on the new thread, where ``absent`` is called, too, whenever there is no such topic."""
        self._context, self._topic, self._reader, self._silence = context, topic, reader, silence
        self._absent = absent
        self._connection = Connection(context)
        self._stop = threading.Event()
        self._thread = context.start_thread(f"{context.name}-follower", self._run)

    def close(self) -> None:
        """End the thread and its client."""
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except KafkaException as problem:
                self._connection.fails(problem.args[0])
                if problem.args[0].code() in _ABSENT:
                    self._absent()
            except Exception:
                self._context.log.exception("following %s failed; it begins again", self._topic)
            self._stop.wait(_RETRY)

    def _follow(self) -> None:
        consumer = Consumer(
            client_config(
                self._context,
                group_id=f"quotahost-{self._context.node_id}",  # named because it must be; never joined
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="earliest",
                fetch_wait_max_ms=100,
                topic_metadata_refresh_interval_ms=5000,
            )
        )
        try:
            partitions = _partitions(consumer, self._topic)
            consumer.assign([TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in partitions])
            self._connection.works()
            self._read(consumer, set(partitions))
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, to_end: set[int]) -> None:
        live = False
        heard = time.monotonic()
        while not self._stop.is_set() and time.monotonic() - heard < self._silence:
            messages = consumer.consume(_AT_ONCE, _POLL)
            for message in messages:
                error = message.error()
                if error is None:
                    heard = time.monotonic()
                    self._connection.works()
                    self._reader.record(message.key(), message.value(), live)
                elif error.code() == KafkaError._PARTITION_EOF:
                    to_end.discard(message.partition() or 0)
                elif not self._goes_on(message):
                    return
            if not to_end and not live:
                live = True
                self._reader.caught_up()

    def _goes_on(self, message: Message) -> bool:
        error: Any = message.error()
        self._connection.fails(error.str())
        return error.code() not in _REBUILD


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    found = consumer.list_topics(topic, timeout=2.0).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return list(found.partitions)
