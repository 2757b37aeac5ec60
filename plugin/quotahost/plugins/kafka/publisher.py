"""Writes this broker's records to a compacted topic, and does not give up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from quotahost.api import Context
from quotahost.plugins.kafka.client import Connection, client_config
from quotahost.plugins.kafka.topics import ensure_compacted

RETRY: Final = 1.0  # seconds
_GATHERS: Final = 5.0  # seconds in which the brokers of a new cluster register
_FLUSH: Final = 1.0  # seconds
_PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "linger.ms": 0,
    "message.timeout.ms": 5000,  # the next record says more than a late one
    "topic.metadata.refresh.interval.ms": 5000,
    "queue.buffering.max.messages": 100,
}


class Publisher:
    """One record at a time; connects, and makes the topic, when there is something to write.

    A failure is counted, logged once until it heals, and told by ``lost``: what was to be written is then the
    caller's to write again, after RETRY.
    """

    def __init__(
        self,
        context: Context[object],
        topic: str,
        what: str,
        lost: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is connected yet.

        Args:
            context: the task's.
            topic: its name; compacted, made if absent.
            what: is published, in words for the log.
            lost: is called, on the thread that calls ``busy`` or ``send``, when a record was not delivered.
            clock: in seconds, monotonic.
        """
        self._context, self._topic, self._what, self._lost = context, topic, what, lost
        self._clock = clock
        self._connection = Connection(context)
        self._producer: Producer | None = None
        self._started = clock()
        self._answered: float | None = None
        self._in_flight = False
        self._told_error = ""
        context.metrics.count("Publication", "", "Errors", 0)

    def busy(self) -> bool:
        """Whether a record is still under way; hears first of those that arrived or were lost."""
        if self._producer is not None:
            self._producer.poll(0)
        return self._in_flight

    def send(self, key: bytes, make: Callable[[], bytes]) -> None:
        """Write what ``make`` makes; a failure, also in making it, is told by ``lost``, at once or later."""
        try:
            value = make()
            self._connected().produce(self._topic, key=key, value=value, on_delivery=self._delivered)
            self._in_flight = True
        except KafkaException as problem:
            self._failed(problem.args[0])
        except Exception as problem:  # the cluster doesn't tell its brokers yet, and the like
            self._failed(problem)

    def close(self) -> None:
        """Give what is under way a last moment."""
        if self._producer is not None:
            self._producer.flush(_FLUSH)

    def _connected(self) -> Producer:
        if self._producer is None:
            brokers, now = len(self._context.broker.registered()), self._clock()
            self._answered = now if self._answered is None else self._answered
            patient = self._starting()
            gathering = patient and now - self._answered < _GATHERS
            config = client_config(self._context)
            ensure_compacted(config, self._topic, brokers, patient, gathering)
            self._producer = Producer(config | _PRODUCER)
        return self._producer

    def _starting(self) -> bool:
        grace: float = self._context.settings.startup_grace.total_seconds()
        return self._clock() - self._started < grace

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._in_flight = False
        if error is None:
            self._told_error = ""
            self._connection.works()
        else:
            self._failed(error)

    def _failed(self, problem: Any) -> None:
        """Look the topic up again before the next try: it may be gone."""
        self._producer = None
        self._lost()
        if not self._connection.ever and self._starting():
            return
        self._context.metrics.count("Publication", "", "Errors")
        self._connection.fails(problem)
        if str(problem) != self._told_error:
            self._told_error = str(problem)
            self._context.log.warning(
                "this broker's %s can't be published; it tries again: %s", self._what, problem
            )
