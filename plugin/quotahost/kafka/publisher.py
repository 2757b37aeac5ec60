"""Publishes what a task sees to a compacted topic, after a change or a period; after a failure it reconnects.

1. A task offers what it sees now. Most looks differ so little from the published one that no reader would act on the
   difference, so :meth:`Publisher.offer` publishes only those that matter.
2. With the first record, the publisher connects and creates the topic.
3. A failure is counted, and logged once until a record is delivered (:class:`Connection`). After a pause, the publisher
   publishes the next look without a comparison.
"""

import math
import time
from collections.abc import Callable, Collection
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.kafka.admin import NotMade, ensure_compacted
from quotahost.kafka.client import DENIED, SELDOM, Connection, Login, Session, login

_RETRY: Final = 1.0  # seconds
_REGISTERING: Final = 5.0  # seconds, within which the brokers of a new cluster register
_FLUSH: Final = 1.0  # seconds
_PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "linger.ms": 0,
    "compression.type": "lz4",  # a look with a thousand clients shrinks to a tenth
    "message.timeout.ms": 5000,  # after this time, the next and newer record may be written instead
    "topic.metadata.refresh.interval.ms": 5000,  # notices a deleted topic soon; the default is 5 minutes
    "queue.buffering.max.messages": 100,
}

T = TypeVar("T")


class Publisher(Generic[T]):
    """Publishes one record at a time, with this broker's id as the key.

    One thread calls the publisher; any thread may call ``publish_again`` and ``make_topics``.
    """

    def __init__(
        self, context: Context[object], topic: str, has_changed: Callable[[T, T], bool],
        clock: Clock = time.monotonic, more: Callable[[], Collection[str]] = tuple, connection: str = "",
    ) -> None:  # fmt: skip
        """Connect nothing yet.

        ``has_changed`` tells whether the second value differs enough from the first one, which was published. The
        publisher creates the topic, and the topics that ``more`` returns at that moment, compacted, if they are absent.
        ``connection`` is the metric's name; "" means the plugin's name.
        """
        self._context, self._topic, self._more, self._has_changed = context, topic, more, has_changed
        self._clock = clock
        self._published: T | None = None
        self.sent_at = -math.inf  # monotonic seconds
        self._connection = Connection(context, connection, clock)
        self._login: Login | None = None
        self._session: Session | None = None
        self._producer: Producer | None = None
        self._again_at = clock()
        self._answered_at = math.inf  # when the cluster first said which brokers are registered
        self._in_flight = False
        self._topics_gone = False
        context.metrics.count("Publication", "", "Errors", 0)
        context.closing.callback(self.close)

    def offer(self, seen: T | None, make: Callable[[T], bytes], period: float) -> None:
        """Publish ``seen`` if it has changed or the period is over, unless a record is still on its way.

        ``seen`` is None if there is nothing to publish. ``make`` encodes it. ``period``: seconds after which it is
        published again without a change.
        """
        # busy() is called first, because it also reports a lost record, even if there is nothing to send now.
        if self.busy() or seen is None:
            return
        changed = self._published is not None and self._has_changed(self._published, seen)
        if changed or self._clock() - self.sent_at >= period:
            # Set before _send(): if it fails immediately, it calls publish_again(), whose values must stay.
            self._published, self.sent_at = seen, self._clock()
            self._send(lambda: make(seen))

    def publish_again(self) -> None:
        """Publish the next look without a comparison, because the last record was not delivered."""
        self._published, self.sent_at = None, -math.inf

    def busy(self) -> bool:
        """Whether no record may be sent, as one is in flight or was just lost."""
        if self._producer is not None:
            # librdkafka calls _delivered only within poll() and flush(), on the task's thread, so no lock is needed.
            self._producer.poll(0)
            if not self._in_flight and self._session and not self._session.stands():
                self._producer = None
        return self._in_flight or self._clock() < self._again_at

    def _send(self, make: Callable[[], bytes]) -> None:
        if self._topics_gone:  # not in make_topics: the result of a record in flight would be lost
            self._topics_gone, self._producer = False, None
        try:
            producer = self._connected()  # before make(): this may take seconds, and the record would age
            # make() stands in the try, because it may fail, too, and the task must then retry.
            key, value = str(self._context.node_id).encode(), make()
            try:
                producer.produce(self._topic, key=key, value=value, on_delivery=self._delivered)
            except KafkaException as failure:  # the topic is denied, and librdkafka has noticed it before
                raise KafkaException(self._explained(failure.args[0])) from None
            self._in_flight = True
        except Exception as failure:  # for example, the cluster doesn't list its registered brokers yet
            self._failed(failure.args[0] if isinstance(failure, KafkaException) else failure)

    def make_topics(self) -> None:
        """Look the topics up before the next record, and create the absent ones. Any thread may call."""
        self._topics_gone = True

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(_FLUSH)
        # Drop the clients now: until the garbage is collected, they would go on to log in.
        self._producer = self._session = self._login = None
        self._connection.close()

    def _connected(self) -> Producer:
        if self._producer is None:
            self._login = login(self._context)
            self._session = self._login.enter(self._topic)
            asking = AdminClient(self._session.config)
            try:
                for topic in (self._topic, *self._more()):
                    right = "Write" if topic == self._topic else "Read"
                    ensure_compacted(asking, topic, self._registered)
            except KafkaException as failure:
                right = "Create" if isinstance(failure, NotMade) else right
                raise KafkaException(self._login.explained(failure.args[0], right, topic)) from None
            finally:
                asking.poll(0)  # the poll tells the session of a refusal
            self._producer = Producer(self._session.config | _PRODUCER)
        return self._producer

    def _registered(self) -> tuple[int, bool]:
        brokers, now = len(self._context.broker.registered()), self._clock()
        # The 5 s begin with the cluster's first answer, which may come long after this broker's start.
        self._answered_at = min(self._answered_at, now)
        return brokers, self._connection.starting and now - self._answered_at < _REGISTERING

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._in_flight = False
        if error is None:
            self._connection.works()
        else:
            self._failed(self._explained(error))

    def _explained(self, error: KafkaError) -> KafkaError:
        if error.code() == KafkaError._MSG_TIMED_OUT:
            text = "the leader of {0} has confirmed no record in time; kafka-topics.sh --describe --topic {0} names it"
            return KafkaError(error.code(), text.format(self._topic))
        return self._login.explained(error, "Write", self._topic) if self._login else error

    def _failed(self, error: Any) -> None:
        # A right is missing, or the cluster's own policy for new topics refuses (create.topic.policy.class.name), or no
        # broker takes a replica, as all are cordoned. While brokers start, there may soon be enough of them.
        seldom = DENIED | {KafkaError.POLICY_VIOLATION}
        if not self._connection.starting:
            seldom |= {KafkaError.INVALID_REPLICATION_FACTOR}
        rest = SELDOM if isinstance(error, KafkaError) and error.code() in seldom else _RETRY
        if self._session:
            rest, error = max(rest, self._session.rest), self._session.refusal or error
        self._again_at = self._clock() + rest
        self._producer = self._session = None  # the topic may be gone: the next try looks it up again
        self.publish_again()
        if self._connection.fails(error):
            self._context.metrics.count("Publication", "", "Errors")
