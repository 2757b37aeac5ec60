"""``Follower`` follows a compacted topic on a thread of its own, for a plugin that keeps the latest record of each key.

1. The follower logs in and reads all partitions from their beginning, without a consumer group.
2. It gives each record to the plugin. A record that the plugin refuses is counted, and the first one is logged.
3. At the end of the topic it tells the plugin that it has caught up; all later records are *live*.
4. Now and then it checks that the topic is still the same. If the topic is gone or was made anew, or if the position or
   the login is lost, the follower begins again after a pause.
"""

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

_POLL: Final = 0.2  # seconds; the thread notices close() within this time
_BATCH: Final = 500  # records
_RETRY: Final = 0.5  # seconds
_LOOK: Final = 5.0  # seconds between checks of the topic itself
_ANSWER: Final = 2.0  # seconds for the answer to such a check
_NEVER: Final = 1 << 62  # a timestamp that no clock shows; a writer can choose it
_CLOSE_WITHIN: Final = 0.5  # seconds; a plugin may have several, and a broker's shutdown gives all plugins together 4 s
_READER: Final = {
    # Empty polls are most of what quotahost costs an idle broker, and a leader gets those of all brokers. But the first
    # end of a topic, and the checks of the topic, wait behind a poll, and so do new records behind the checks.
    "fetch.wait.max.ms": 250,
    "topic.metadata.refresh.interval.ms": 5000,  # notices a deleted topic soon; the default is 5 minutes
}
# After these errors the position is lost: the topic is gone or denied, or a new topic has its name.
_PLACE_LOST: Final = {
    *ABSENT,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}


#: Takes one record on the follower's thread, or raises Refused. The arguments are the key; the value, None for a
#: tombstone; whether the record is *live*, that is, written after the follower had read the topic to its end; and when
#: Kafka appended the record, in ms since 1970 by the leader's clock, or None if the topic keeps the time of the
#: writer's clock (``message.timestamp.type``).
OnRecord: TypeAlias = Callable[[bytes | None, bytes | None, bool, int | None], None]

#: How far a topic was read at one moment: the largest timestamp, and each partition's offset (no offsets at first). The
#: offset is the one behind the last record: the marker of a transaction's end may follow, with a larger timestamp.
_Place: TypeAlias = tuple[int, dict[int, int]]


def refusals_counted(context: Context[object], topic: str, record: OnRecord) -> OnRecord:
    """Wrap ``record`` so that it counts refused records by reason and logs the first one, and never raises Refused."""
    fault = LoggedOnce(context.log)

    def take(key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        try:
            record(key, value, live, written_ms)
            fault.healed()
        except Refused as refused:
            context.metrics.count("Refused", refused.reason, "Records")
            whose = printable((key or b"").decode(errors="replace"))
            fault.report("a record of %s with key %s was refused, the last valid one stays: %s", topic, whose, refused)

    return take


class Follower:
    """Reads a topic from its beginning, and again whenever its position is lost.

    The follower joins no consumer group and commits no offset. It waits while the broker or the topic is absent.
    """

    def __init__(
        self, context: Context[object], topic: str, record: OnRecord, silence: Callable[[], float] = lambda: 60.0,
        caught_up: Callable[[], None] = lambda: None, absent: Callable[[], None] = lambda: None,
        partition_of: Callable[[int], int] | None = None, connection: str = "",
        begins: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Start the thread, which calls ``absent`` whenever the topic doesn't exist.

        The thread calls ``begins`` each time before it reads the topic from its beginning, and ``caught_up`` each time
        it has read the topic to its end. After ``silence`` seconds without a record, it reads the topic again: a writer
        should have written by then, so the client may have lost its position without an error.
        ``partition_of`` returns, for a number of partitions, the only one to read; if it is None, all are read.
        ``connection`` is the metric's name; "" means the plugin's name.
        """
        self._context, self._topic, self._silence = context, topic, silence
        self._record = refusals_counted(context, topic, record)
        self._begins, self._caught_up, self._absent = begins, caught_up, absent
        self._partition_of = partition_of
        self.connection = Connection(context, connection)  # knows why the topic can't be read now
        self._again = threading.Event()
        self._fault = LoggedOnce(context.log, logging.ERROR)
        self.has_read = False  # whether the topic was read to its end at least once
        self._stop = threading.Event()  # a Periodic doesn't fit, because _read runs until it is stopped
        self._thread = context.start_thread(f"{context.name}-follower", self._run)
        context.closing.callback(self.close)

    @property
    def waits_for(self) -> str:
        """A sentence, with the reason if it is known, until the topic has been read to its end once; then ""."""
        return "" if self.has_read else f"topic {self._topic} is not read yet{self.connection.fault}"

    def read_again(self) -> None:
        self._again.set()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._pause = _RETRY
            try:
                mine = login(self._context)  # this reference keeps the login between two tries
                self._follow(mine.enter(self._topic))
            except KafkaException as failure:
                # confluent_kafka's exception has no code; the KafkaError inside it has.
                error = failure.args[0]
                is_absent = error.code() in ABSENT
                # Each try is a login. While brokers start, a broker may soon create the topic.
                if error.code() in DENIED or (is_absent and not self.connection.starting):
                    self._pause = SELDOM
                if is_absent:
                    self._absent()
                if self.connection.ever or not is_absent:
                    self.connection.fails(mine.explained(error, "Read", self._topic))
                else:  # no fault: a writer may create the topic later
                    self.connection.answers()
            except NoAnswer as failure:
                self.connection.fails(failure)
            except Exception:  # for example of the callback ``record``; the thread must go on
                text = "reading topic %s failed; it is read again from its beginning"
                self._fault.report(text, self._topic, exc_info=True)
            # Pause after a lost position, too: an absent or unreadable topic must not be requested without a pause.
            self._stop.wait(self._pause)
        self.connection.close()  # on this thread, which otherwise could show the metric again

    def _follow(self, session: Session) -> None:
        reader = consumer(session.config | _READER, f"{GROUPS}{self._context.node_id}")
        try:
            self._again.clear()
            assigned = self._partitions(reader)
            # assign(), not subscribe(): every broker reads all partitions; a group would divide them.
            reader.assign([TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in assigned])
            self._read(reader, session, assigned)
        finally:
            reader.poll(0)  # the poll tells the session of a refusal
            self._pause = max(self._pause, session.rest)
            reader.close()

    def _read(self, reader: Consumer, session: Session, assigned: set[int]) -> None:
        """Pass records on until the position or the login is lost, or the topic must be read again."""
        live, unread = False, set(assigned)  # unread: partitions whose end isn't reached yet
        latest, behind = -1, dict[int, int]()  # of all records read: the largest timestamp, and the offsets behind them
        then: _Place = -1, {}
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
                    # A timestamp of another kind comes from the writer's clock.
                    written_ms = at if kind == TIMESTAMP_LOG_APPEND_TIME else None
                    latest, behind[message.partition() or 0] = max(latest, at), (message.offset() or 0) + 1
                    self._record(message.key(), message.value(), live, written_ms)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self.connection.works()
                    unread.discard(message.partition() or 0)
                else:
                    self.connection.fails(session.login.explained(error, "Read", self._topic))
                    # After any other error librdkafka continues by itself.
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
            if live and latest >= 0 and not then[1]:
                then = latest, dict(behind)

    def _is_another(self, reader: Consumer, session: Session, assigned: set[int], then: _Place) -> bool:
        """Whether the topic is gone, has more partitions, or is a new one; librdkafka may read on without an error."""
        try:
            current = self._partitions(reader)
        except KafkaException as failure:  # reading goes on: the cluster may be busy, or back again
            self.connection.fails(session.login.explained(failure.args[0], "Read", self._topic))
            return failure.args[0].code() in ABSENT
        self.connection.works()  # in an empty topic only this shows that a fault is over
        return not current <= assigned or self._was_made_anew(reader, *then)

    def _was_made_anew(self, reader: Consumer, latest: int, stood: dict[int, int]) -> bool:
        """Whether a record with a timestamp above ``latest`` lies before ``stood``, the offsets when that was read.

        In the same topic, a newer record would lie behind them. A consumer doesn't tell its topic's id, and each answer
        of confluent_kafka's Admin client that does leaks 176 bytes (2.16), which in a broker adds up for months.
        """
        if not 0 <= latest < _NEVER:
            return False
        newer = [TopicPartition(self._topic, partition, latest + 1) for partition in stood]
        try:
            found = reader.offsets_for_times(newer, timeout=_ANSWER)
        except KafkaException:  # the next check decides
            return False
        return any(0 <= first.offset < stood[first.partition] for first in found)

    def _partitions(self, reader: Consumer) -> set[int]:
        found = set(partitions(reader, self._topic, wait=_ANSWER))
        return {self._partition_of(len(found))} if self._partition_of else found
