"""Writes this broker's records to a compacted topic; tries again while a cluster can't be reached or one is lost."""

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
_REGISTERING: Final = 5.0  # seconds within which the brokers of a new cluster register
_FLUSH: Final = 1.0  # seconds
_PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "linger.ms": 0,
    "compression.type": "lz4",  # a look at a thousand clients shrinks to a tenth
    "message.timeout.ms": 5000,  # by then the next record, which is newer, may be written instead
    "topic.metadata.refresh.interval.ms": 5000,  # a topic that was deleted is noticed soon; by default in 5 minutes
    "queue.buffering.max.messages": 100,
}


class Publisher:
    """Publishes one record at a time. It connects and creates the topic with the first one.

    A failure is counted, and logged once until a record is delivered (:class:`Connection`). The caller learns of it by
    ``lost``, and may publish again after a pause.
    """

    def __init__(
        self, context: Context[object], topic: str, lost: Callable[[], None],
        clock: Clock = time.monotonic, more: Sequence[str] = (), connection: str = "",
    ) -> None:  # fmt: skip
        """Nothing is connected yet.

        The topic is compacted, and created if it is absent, as are ``more`` topics with it. ``lost`` is called, on the
        thread that calls ``busy`` or ``send``, when a record was not delivered. ``connection`` is the name of its
        metric, the plugin's if it is "".
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
        """Whether none may be sent yet: one is on its way, or was lost just now. It calls ``lost`` if one was since."""
        if self._producer is not None:
            # librdkafka calls _delivered only within poll() and flush(), on the task's thread, so no lock is needed.
            self._producer.poll(0)
            if not self._in_flight and self._session and not self._session.stands():
                self._producer = None
        return self._in_flight or self._clock() < self._again_at

    def send(self, key: bytes, make: Callable[[], bytes]) -> None:
        """Write the value that ``make`` returns. If that or the writing fails, ``lost`` is called, now or later."""
        if self._topics_gone:  # only now: a record that was on its way would never be heard of again
            self._topics_gone, self._producer = False, None
        try:
            producer = self._connected()  # first: it may wait for seconds, in which a record would age
            # Within the try: what the record is made of may fail, too, and the task must then try again.
            producer.produce(self._topic, key=key, value=make(), on_delivery=self._delivered)
            self._in_flight = True
        except Exception as failure:  # such as a cluster that doesn't say yet which brokers are registered
            self._failed(failure.args[0] if isinstance(failure, KafkaException) else failure)

    def make_topics(self) -> None:
        """Look up the topics before the next record, and create those that are gone. Any thread may call."""
        self._topics_gone = True

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(_FLUSH)
        # Not when the garbage is collected: until then they would go on to log in.
        self._producer = self._session = self._login = None
        self._connection.close()

    def _connected(self) -> Producer:
        if self._producer is None:
            # Before this broker is asked, which while it stops lets one wait for seconds.
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
                asking.poll(0)  # by that alone the session hears of a refusal
            self._producer = Producer(self._session.config | _PRODUCER)
        return self._producer

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._in_flight = False
        if error is None:
            self._connection.works()
        else:
            self._failed(self._login.explained(error, "Write", self._topic) if self._login else error)

    def _failed(self, error: Any) -> None:
        # By a right, or by the cluster's own policy for new topics (create.topic.policy.class.name).
        denied = isinstance(error, KafkaError) and error.code() in DENIED | {KafkaError.POLICY_VIOLATION}
        rest = SELDOM if denied else _RETRY
        if self._session:
            rest, error = max(rest, self._session.rest), self._session.refusal or error
        self._again_at = self._clock() + rest
        self._producer = self._session = None  # the topic may be gone: the next try looks it up again
        self._lost()
        if self._connection.fails(error):
            self._context.metrics.count("Publication", "", "Errors")
