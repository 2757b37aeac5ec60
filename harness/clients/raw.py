"""Single requests of known size and time, in old versions of Kafka's protocol that are simple to write."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from harness.kafka.node import KafkaNode
from harness.kafka.settings import INTERNAL

_PRODUCE, _FETCH, _API_VERSIONS, _CREATE_TOPICS = (0, 3), (1, 4), (18, 0), (19, 4)
_ACKS, _TIMEOUT_MS, _WAIT_MS = -1, 10_000, 0


def now_ms() -> int:
    """Wall clock, as Kafka reads it: ``Time.SYSTEM.milliseconds``."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response.

    Attributes:
        sent_ms: wall clock before it was sent; the broker looked at its clock after that ...
        received_ms: ... and before this, when the response was there.
        body: bytes of the request without its header: what a PRODUCE quota is charged.
        answer: the response from the correlation id on: with its length, what a FETCH quota is charged.
    """

    sent_ms: int
    received_ms: int
    body: int
    answer: bytes

    @property
    def took_ms(self) -> int:
        """How far the moment of the charge may be from either end."""
        return self.received_ms - self.sent_ms


class RawClient:
    """One connection as ANONYMOUS; a broker that throttles mutes it, so the next answer comes later.

    Every method raises ConnectionError if the broker closes it, TimeoutError without an answer in time.
    """

    def __init__(self, node: KafkaNode, client_id: str | None, listener: str = INTERNAL) -> None:
        """Connects; ``client_id`` None sends none; ``listener`` is one of ``harness.kafka.settings``."""
        name = None if client_id is None else client_id.encode()
        self._client: Final = struct.pack(">h", -1 if name is None else len(name)) + (name or b"")
        self._socket: Final = socket.create_connection(("127.0.0.1", node.ports[listener]))

    def produce(self, topic: str, batch: bytes) -> Exchange:
        """Sends a batch to partition 0, Produce v3."""
        data = struct.pack(">ii", 0, len(batch)) + batch
        body = struct.pack(">hhi", -1, _ACKS, _TIMEOUT_MS) + _array(_string(topic) + _array(data))
        return self.ask(_PRODUCE, body)

    def fetch(self, topic: str, max_bytes: int) -> Exchange:
        """Reads partition 0 from its beginning, Fetch v4."""
        partition = struct.pack(">iqi", 0, 0, max_bytes)
        limits = struct.pack(">iiiib", -1, _WAIT_MS, 0, max_bytes, 0)
        return self.ask(_FETCH, limits + _array(_string(topic) + _array(partition)))

    def create_topics(self, topics: Mapping[str, int]) -> Exchange:
        """Creates topics of so many partitions, one replica each, CreateTopics v4, which knows no strict quotas."""
        each = [_string(name) + struct.pack(">ihii", count, 1, 0, 0) for name, count in topics.items()]
        return self.ask(_CREATE_TOPICS, _array(*each) + struct.pack(">ib", 3 * _TIMEOUT_MS, 0))

    def ping(self) -> None:
        """Sends ApiVersions v0 and waits for nothing."""
        self._send(_API_VERSIONS, b"")

    def answered(self, within: float) -> bool:
        """Whether an answer, to a ping, begins to arrive within so many seconds; it takes it."""
        if not select.select([self._socket], [], [], within)[0]:
            return False
        self._receive(within)
        return True

    def ask(self, api: tuple[int, int], body: bytes, timeout: float = 60) -> Exchange:
        """One request and its response."""
        sent = now_ms()
        self._send(api, body)
        answer = self._receive(timeout)
        return Exchange(sent, now_ms(), len(body), answer)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Closes the connection."""
        self._socket.close()

    def _send(self, api: tuple[int, int], body: bytes) -> None:
        request = struct.pack(">hhi", *api, 0) + self._client + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)

    def _receive(self, timeout: float) -> bytes:
        self._socket.settimeout(timeout)
        return self._exactly(int.from_bytes(self._exactly(4)))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data


def throttle_ms(answer: bytes, *, first: bool) -> int:
    """``throttle_time_ms``: the first field of a response (Fetch, CreateTopics), or the last (Produce)."""
    return int.from_bytes(answer[4:8] if first else answer[-4:], signed=True)


def created(answer: bytes) -> dict[str, tuple[int, str | None]]:
    """Error code and message by topic, of a CreateTopics v4 response."""
    (count,) = struct.unpack_from(">i", answer, 8)
    at, topics = 12, {}
    for _ in range(count):
        name, at = _text(answer, at)
        (code,) = struct.unpack_from(">h", answer, at)
        message, at = _text(answer, at + 2)
        topics[name or ""] = (code, message)
    return topics


def _array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    (size,) = struct.unpack_from(">h", data, at)
    at += 2
    return (None, at) if size < 0 else (data[at : at + size].decode(), at + size)
