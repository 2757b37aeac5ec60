"""Stand-ins for the plugins' Kafka clients, for tests of plugins that publish or read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from quotahost.kafka.follower import refusals_counted

T = TypeVar("T")


class FakeKafka(Generic[T]):
    """Takes records, and reports their delivery when it is polled.

    Attributes:
        sent: the decoded records.
        made: the arguments of each ``ensure_compacted`` but the client.
        delivers: the error with which records are delivered; None for success, ``...`` for never.
    """

    def __init__(self, decode: Callable[[bytes, bytes], T]) -> None:
        """Nothing is sent yet; ``decode`` takes a record's key and value."""
        self._decode = decode
        self._waiting: list[Callable[..., None]] = []
        self.sent: list[T] = []
        self.made: list[tuple[str, int, bool]] = []
        self.delivers: Any = None

    def ensure(self, admin: Any, topic: str, brokers: int, gathering: bool) -> None:
        """In the place of ``ensure_compacted``."""
        self.made.append((topic, brokers, gathering))

    def producer(self, config: Any) -> FakeKafka[T]:
        """In the place of ``Producer``."""
        return self

    def produce(self, topic: str, key: bytes, value: bytes, on_delivery: Callable[..., None]) -> None:
        """As confluent-kafka's."""
        self.sent.append(self._decode(key, value))
        self._waiting.append(on_delivery)

    def poll(self, timeout: float) -> None:
        """As confluent-kafka's."""
        if self.delivers is not ...:
            waiting, self._waiting = self._waiting, []
            for on_delivery in waiting:
                on_delivery(self.delivers, None)

    flush = poll


#: Makes a FakeKafka that stands in for all publishers.
Publish = Callable[[Callable[[bytes, bytes], T]], FakeKafka[T]]


class FakeThread:
    """Stands in for a ``Follower`` or ``RegisteredBrokers``: tests call what these would call.

    Attributes:
        argument: the follower's topic, or the function to call with the registered brokers.
        answered: see ``RegisteredBrokers``.
        has_read: see ``Follower``.
        fault: the end of the sentence while it has not.
        again: how often the follower was asked to read the topic again.
        more: the follower's further arguments.
        take: gives a record to the follower's reader, as the follower does.
        begins: tells the reader that its topic is read from the beginning, as at first; nothing where it isn't told.
    """

    def __init__(self, context: Any, argument: Any, record: Any = None, *more: Any, **named: Any) -> None:
        self.argument, self.more = argument, more
        self.take = refusals_counted(context, argument, record)
        self.begins = named.get("begins", lambda: None)
        self.begins()
        self.answered = self.has_read = False
        self.again, self.fault = 0, ""

    @property
    def waits_for(self) -> str:
        return "" if self.has_read else f"topic {self.argument} is not read yet{self.fault}"

    def read_again(self) -> None:
        self.again += 1

    def close(self) -> None: ...
