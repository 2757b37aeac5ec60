"""Follows a compacted topic from its beginning, again where its place is lost, on a thread; counts refused records."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from quotahost.api import Context
from quotahost.base.background import LoggedOnce
from quotahost.base.text import printable
from quotahost.kafka.client import ABSENT, DENIED, SELDOM, Connection, NoAnswer, Session, consumer, login, partitions
from quotahost.records.codec import Refused
from quotahost.records.topics import GROUPS

_POLL: Final = 0.2  # seconds; close() is noticed after so long
_BATCH: Final = 500  # records
_RETRY: Final = 0.5  # seconds
_LOOK: Final = 5.0  # seconds between looks at the topic itself
_ANSWER: Final = 2.0  # seconds for its answer
_NEVER: Final = 1 << 62  # a timestamp that no clock has; whoever writes may choose it
_CLOSE_WITHIN: Final = 0.5  # seconds; one plugin has several, and the broker's end grants all plugins together 4 s
_READER: Final = {
    "fetch.wait.max.ms": 100,
    "topic.metadata.refresh.interval.ms": 5000,  # a topic that was deleted is noticed soon; by default in 5 minutes
}
# After these errors the place in the topic is lost: the topic is gone, or another one has its name by now.
_PLACE_LOST: Final = {
    *ABSENT,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}


#: Takes a record on the follower's thread, or raises Refused: its key; its value, None for a tombstone; whether it is
#: *live*, that is written after the follower had read all that was in the topic before; and when Kafka appended it, in
#: ms since 1970 by its leader's clock, None in a topic that keeps the time of the writer's clock instead
#: (``message.timestamp.type``).
OnRecord: TypeAlias = Callable[[bytes | None, bytes | None, bool, int | None], None]

#: How far a topic was read at some moment: the newest timestamp, and where each partition stood; none before it.
_Place: TypeAlias = tuple[int, list[TopicPartition]]


def refusals_counted(context: Context[object], topic: str, record: OnRecord) -> OnRecord:
    """``record`` that counts each record it refuses by the reason, logs the first of them, and never raises Refused."""
    fault = LoggedOnce(context.log)

    def take(key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        try:
            record(key, value, live, written_ms)
            fault.healed()
        except Refused as refused:
            context.metrics.count("Refused", refused.reason, "Records")
            whose = printable((key or b"").decode(errors="replace"))
            fault.report("a record of %s was refused, what was known of %s stays: %s", topic, whose, refused)

    return take


def _nothing() -> None: ...


class Follower:
    """Reads a topic from its beginning, and again whenever its place is lost.

    It joins no consumer group and commits no offset. It waits for a broker or a topic that isn't there yet.
    """

    def __init__(
        self, context: Context[object], topic: str, record: OnRecord, silence: Callable[[], float] = lambda: 60.0,
        caught_up: Callable[[], None] = _nothing, absent: Callable[[], None] = _nothing,
        partition_of: Callable[[int], int] | None = None, connection: str = "",
        begins: Callable[[], None] = _nothing,
    ) -> None:  # fmt: skip
        """Start the thread, which calls ``absent`` whenever the topic doesn't exist.

        It calls ``begins`` before it reads the topic from its beginning, and ``caught_up`` when all that was in it has
        been read; both again whenever it is read again.
        After ``silence`` seconds without any record the topic is read again: somebody should have written by then, so
        the client may have lost its place without an error. With ``partition_of`` one partition alone is read: the one
        that this function returns for the number of partitions. ``connection`` is the name of its metric, the plugin's
        if it is "".
        """
        self._context, self._topic, self._silence = context, topic, silence
        self._record = refusals_counted(context, topic, record)
        self._begins, self._caught_up, self._absent = begins, caught_up, absent
        self._partition_of = partition_of
        self._connection = Connection(context, connection)
        self._again = threading.Event()
        self._fault = LoggedOnce(context.log, logging.ERROR)
        self.has_read = False  # all that was in the topic, at least once
        self._stop = threading.Event()  # no Periodic: _read runs until it is stopped
        self._thread = context.start_thread(f"{context.name}-follower", self._run)
        context.closing.callback(self.close)

    @property
    def waits_for(self) -> str:
        """A sentence while the topic has not been read to its end, with the reason if one is known; "" then."""
        return "" if self.has_read else f"topic {self._topic} is not read yet{self._connection.fault}"

    def read_again(self) -> None:
        self._again.set()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._pause = _RETRY
            try:
                mine = login(self._context)  # kept between two tries
                self._follow(mine.enter(self._topic))
            except KafkaException as failure:
                # confluent_kafka puts a KafkaError into its exceptions, which alone knows the code.
                error = failure.args[0]
                is_absent = error.code() in ABSENT
                # Each try is a login. While brokers start, a topic is about to be made.
                if error.code() in DENIED or (is_absent and not self._connection.starting):
                    self._pause = SELDOM
                if is_absent:
                    self._absent()
                if self._connection.ever or not is_absent:
                    self._connection.fails(mine.explained(error, "Read", self._topic))
                else:  # a topic may wait for its writer
                    self._connection.answers()
            except NoAnswer as failure:
                self._connection.fails(failure)
            except Exception:  # of who reads, for example; the thread must outlive it
                text = "following %s failed; it is read again from its beginning, again and again"
                self._fault.report(text, self._topic, exc_info=True)
            # After a lost place, too: a topic that is absent or unreadable must not be asked for without a pause.
            self._stop.wait(self._pause)
        self._connection.close()  # on this thread, the last one that may show it

    def _follow(self, session: Session) -> None:
        reader = consumer(session.config | _READER, f"{GROUPS}{self._context.node_id}")
        try:
            self._again.clear()
            assigned = self._partitions(reader)
            # Assigned and not subscribed: every broker reads all partitions, where a group would divide them.
            reader.assign([TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in assigned])
            self._read(reader, session, assigned)
        finally:
            reader.poll(0)  # by that alone the session hears of a refusal
            self._pause = max(self._pause, session.rest)
            reader.close()

    def _read(self, reader: Consumer, session: Session, assigned: set[int]) -> None:
        """Hand on records until the place or the login is lost, or there is a reason to read all again."""
        live, unread = False, set(assigned)  # those whose end was not reached yet
        mine = [TopicPartition(self._topic, p) for p in assigned]
        newest = -1  # timestamp of all that was read
        then: _Place = -1, []
        self._begins()
        last_record_at = looked_at = time.monotonic()
        while not self._stop.is_set() and time.monotonic() - last_record_at < self._silence():
            if time.monotonic() - looked_at > _LOOK:
                looked_at = time.monotonic()
                if self._is_another(reader, session, assigned, then):
                    return
            if self._again.is_set() or not session.stands():
                return
            for message in reader.consume(_BATCH, _POLL):
                error: Any = message.error()
                if error is None:
                    last_record_at = time.monotonic()
                    kind, at = message.timestamp()
                    # A timestamp of another kind is the clock of whoever wrote the record.
                    written_ms = at if kind == TIMESTAMP_LOG_APPEND_TIME else None
                    newest = max(newest, at)
                    self._record(message.key(), message.value(), live, written_ms)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._connection.works()
                    unread.discard(message.partition() or 0)
                else:
                    self._connection.fails(session.login.explained(error, "Read", self._topic))
                    # After any other error librdkafka goes on by itself.
                    if error.code() in _PLACE_LOST:
                        self._pause = SELDOM if error.code() in DENIED else _RETRY
                        return
            if not unread and not live:
                live = True
                self._caught_up()
                if not self.has_read:
                    self._context.log.info("topic %s is read", self._topic)
                self.has_read = True
                self._fault.healed()
            if live and newest >= 0 and not then[1]:
                then = newest, reader.position(mine)

    def _is_another(self, reader: Consumer, session: Session, assigned: set[int], then: _Place) -> bool:
        """Whether the topic is gone, has more partitions, or was made anew; librdkafka may not say so, and reads on."""
        try:
            current = self._partitions(reader)
        except KafkaException as failure:  # reading goes on: the cluster may be back, or busy
            self._connection.fails(session.login.explained(failure.args[0], "Read", self._topic))
            return failure.args[0].code() in ABSENT
        self._connection.works()  # in an empty topic nothing else shows that a fault is over
        return not current <= assigned or self._was_made_anew(reader, *then)

    def _was_made_anew(self, reader: Consumer, newest: int, places: list[TopicPartition]) -> bool:
        """Whether a record that is newer than all that was read then lies before the place where reading stood.

        In the same topic such a record was still to be read. A consumer doesn't tell its topic's id, and each answer of
        confluent_kafka's Admin client that does leaves 176 bytes behind (2.16), which in a broker adds up for months.
        """
        if not 0 <= newest < _NEVER:
            return False
        stood = {place.partition: place.offset for place in places}
        newer = [TopicPartition(self._topic, partition, newest + 1) for partition in stood]
        try:
            found = reader.offsets_for_times(newer, timeout=_ANSWER)
        except KafkaException:  # the next look tells
            return False
        return any(0 <= first.offset < stood[first.partition] for first in found)

    def _partitions(self, reader: Consumer) -> set[int]:
        found = set(partitions(reader, self._topic, wait=_ANSWER))
        return {self._partition_of(len(found))} if self._partition_of else found
