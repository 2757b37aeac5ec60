"""Fakes of the plugins' Kafka clients, for tests of plugins that publish or read records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from quotahost.kafka.follower import refusals_counted

T = TypeVar("T")


class FakeKafka(Generic[T]):
    """Takes records, and reports their delivery when it is polled.

    Attributes:
        sent: the decoded records.
        made: the topic of each call of ``ensure_compacted``, and what ``registered`` returns.
        delivers: the error of each delivery; None is a success, and with ``...`` no delivery is reported.
    """

    def __init__(self, decode: Callable[[bytes, bytes], T]) -> None:
        """Nothing is sent yet; ``decode`` takes a record's key and value."""
        self._decode = decode
        self._waiting: list[Callable[..., None]] = []
        self.sent: list[T] = []
        self.made: list[tuple[str, int, bool]] = []
        self.delivers: Any = None

    def ensure(self, admin: Any, topic: str, registered: Callable[[], tuple[int, bool]]) -> None:
        """Replaces ``ensure_compacted``."""
        self.made.append((topic, *registered()))

    def producer(self, config: Any) -> FakeKafka[T]:
        """Replaces ``Producer``."""
        return self

    def produce(self, topic: str, key: bytes, value: bytes, on_delivery: Callable[..., None]) -> None:
        """Behaves like confluent-kafka's method."""
        self.sent.append(self._decode(key, value))
        self._waiting.append(on_delivery)

    def poll(self, timeout: float) -> None:
        """Behaves like confluent-kafka's method."""
        if self.delivers is not ...:
            waiting, self._waiting = self._waiting, []
            for on_delivery in waiting:
                on_delivery(self.delivers, None)

    flush = poll


#: Makes a FakeKafka that replaces the Kafka client of all publishers.
Publish = Callable[[Callable[[bytes, bytes], T]], FakeKafka[T]]


class FakeThread:
    """Replaces a ``Follower`` or ``RegisteredBrokers``: tests make the calls that these classes would make.

    Attributes:
        argument: the follower's topic, or the function to call with the registered brokers.
        answered: see ``RegisteredBrokers``.
        has_read: see ``Follower``.
        fault, starting: see ``Connection``, which ``connection`` stands for.
        again: how often the follower was asked to read the topic again.
        more: the follower's further arguments.
        take: gives a record to the follower's reader, as the follower does.
        absent, begins: call the reader's callback of this name, as the follower does; without one they do nothing.
    """

    def __init__(self, context: Any, argument: Any, record: Any = None, *more: Any, **named: Any) -> None:
        self.argument, self.more = argument, more
        self.take = refusals_counted(context, argument, record)
        self.absent, self.begins = (named.get(name, lambda: None) for name in ("absent", "begins"))
        self.begins()
        self.answered, self.has_read, self.starting = False, False, True
        self.again, self.fault, self.connection = 0, "", self

    @property
    def waits_for(self) -> str:
        return "" if self.has_read else f"topic {self.argument} is not read yet{self.fault}"

    def read_again(self) -> None:
        self.again += 1

    def close(self) -> None: ...
