"""Writes this broker's records to a compacted topic; after a failure it reconnects, and the caller publishes again."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

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


class Publisher:
    """Publishes one record at a time. With the first record it connects and creates the topic.

    A failure is counted, and logged once until a record is delivered (:class:`Connection`). The publisher then calls
    ``lost``, and the caller may publish again after a pause.
    """

    def __init__(
        self, context: Context[object], topic: str, lost: Callable[[], None],
        clock: Clock = time.monotonic, more: Sequence[str] = (), connection: str = "",
    ) -> None:  # fmt: skip
        """Connect nothing yet.

        The publisher creates the topic and ``more`` topics, compacted, if they are absent. If a record is not
        delivered, ``busy`` or ``send`` calls ``lost``, on the caller's thread. ``connection`` is the metric's name; ""
        means the plugin's name.
        """
        self._topics = (topic, *more)
        self._context, self._topic, self._lost = context, topic, lost
        self._clock = clock
        self._connection = Connection(context, connection, clock)
        self._login: Login | None = None
        self._session: Session | None = None
        self._producer: Producer | None = None
        self._again_at = clock()
        self._answered_at: float | None = None  # when the cluster first said which brokers are registered
        self._in_flight = False
        self._topics_gone = False
        context.metrics.count("Publication", "", "Errors", 0)
        context.closing.callback(self.close)

    def busy(self) -> bool:
        """Whether no record may be sent, as one is in flight or was just lost. Calls ``lost`` if a record was lost."""
        if self._producer is not None:
            # librdkafka calls _delivered only within poll() and flush(), on the task's thread, so no lock is needed.
            self._producer.poll(0)
            if not self._in_flight and self._session and not self._session.stands():
                self._producer = None
        return self._in_flight or self._clock() < self._again_at

    def send(self, key: bytes, make: Callable[[], bytes]) -> None:
        """Write the value that ``make`` returns. If ``make`` or the write fails, ``lost`` is called, now or later."""
        if self._topics_gone:  # not in make_topics: the result of a record in flight would be lost
            self._topics_gone, self._producer = False, None
        try:
            producer = self._connected()  # before make(): this may take seconds, and the record would age
            # make() stands in the try, because it may fail, too, and the task must then retry.
            producer.produce(self._topic, key=key, value=make(), on_delivery=self._delivered)
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
            # Log in before registered(), which may block for seconds while this broker stops.
            self._login = login(self._context)
            self._session = self._login.enter(self._topic)
            brokers, now = len(self._context.broker.registered()), self._clock()
            # The 5 s begin with the cluster's first answer, which may come long after this broker's start.
            self._answered_at = now if self._answered_at is None else self._answered_at
            gathering = self._connection.starting and now - self._answered_at < _REGISTERING
            asking = AdminClient(self._session.config)
            try:
                for topic in self._topics:
                    right = "Write" if topic == self._topic else "Read"
                    ensure_compacted(asking, topic, brokers, gathering)
            except KafkaException as failure:
                right = "Create" if isinstance(failure, NotMade) else right
                raise KafkaException(self._login.explained(failure.args[0], right, topic)) from None
            finally:
                asking.poll(0)  # the poll tells the session of a refusal
            self._producer = Producer(self._session.config | _PRODUCER)
        return self._producer

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._in_flight = False
        if error is None:
            self._connection.works()
        else:
            self._failed(self._login.explained(error, "Write", self._topic) if self._login else error)

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
        self._lost()
        if self._connection.fails(error):
            self._context.metrics.count("Publication", "", "Errors")
