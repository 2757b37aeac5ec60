"""A client that sends single requests of known size at known times.

Tests use it to predict Kafka's throttle times to the millisecond, which a real client's batching and
pipelining would hide. It writes the bytes of Kafka's protocol itself, in old versions whose requests are
short. ``harness.clients.rawbatch`` makes the record batches that it sends.
"""

import select
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from harness.kafka.node import KafkaNode
from harness.kafka.settings import CLIENTS, INTERNAL

PRODUCE: Final = (0, 3)  # the key and version of Produce
_FETCH, _API_VERSIONS, _CREATE_TOPICS = (1, 4), (18, 0), (19, 4)
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = (17, 1), (36, 0)
_ACKS, _TIMEOUT_MS, _WAIT_MS = -1, 10_000, 0


def now_ms() -> int:
    """Wall clock, as Kafka reads it: ``Time.SYSTEM.milliseconds``."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One request and its response.

    The broker read its clock at some moment between ``sent_ms`` and ``received_ms``.

    Attributes:
        sent_ms: wall clock in ms before the request was sent.
        received_ms: wall clock in ms once the response was there.
        body_size: bytes of the request without its header. A PRODUCE quota is charged with them.
        response: the response from its correlation id on. A FETCH quota is charged with its length.
    """

    sent_ms: int
    received_ms: int
    body_size: int
    response: bytes

    @property
    def duration_ms(self) -> int:
        """Milliseconds from sending to receiving: by so much the moment of the charge is uncertain."""
        return self.received_ms - self.sent_ms


class RawClient:
    """One connection, as ANONYMOUS or as one of the node's users.

    A broker that throttles the client mutes its connection, so the next response comes later. Every method raises
    ConnectionError if the broker closes the connection, and TimeoutError if no response comes in time.
    """

    def __init__(
        self, node: KafkaNode, client_id: str | None, listener: str = INTERNAL, user: str | None = None
    ) -> None:
        """Connects to a listener of the node, with a user to that for clients with a user.

        With ``client_id`` None, requests carry no client-id.
        """
        self.rename(client_id)
        self._socket: Final = socket.create_connection(("127.0.0.1", node.ports[CLIENTS if user else listener]))
        if user:
            self._log_in(user, node.users[user])

    def _log_in(self, user: str, password: str) -> None:
        """SASL/PLAIN, by SaslHandshake v1 and SaslAuthenticate v0."""
        self.ask(_SASL_HANDSHAKE, _string("PLAIN"))
        token = f"\0{user}\0{password}".encode()
        self.ask(_SASL_AUTHENTICATE, struct.pack(">i", len(token)) + token)

    def rename(self, client_id: str | None) -> None:
        """The further requests carry this client-id: over one connection a client can be many."""
        name = None if client_id is None else client_id.encode()
        self._client = struct.pack(">h", -1 if name is None else len(name)) + (name or b"")

    def produce(self, topic: str, batch: bytes) -> RoundTrip:
        """Sends a record batch to partition 0, by Produce v3."""
        return self.ask(PRODUCE, produce_body(topic, batch))

    def fetch(self, topic: str, max_bytes: int) -> RoundTrip:
        """Reads partition 0 from its beginning, by Fetch v4."""
        partition = struct.pack(">iqi", 0, 0, max_bytes)
        limits = struct.pack(">iiiib", -1, _WAIT_MS, 0, max_bytes, 0)
        return self.ask(_FETCH, limits + _array(_string(topic) + _array(partition)))

    def create_topics(self, topics: Mapping[str, int]) -> RoundTrip:
        """Creates topics with these partition counts and one replica, by CreateTopics v4.

        Before version 6 a client knows no strict quotas (KIP-599): the broker creates the topics and then mutes it.
        """
        each = [_string(name) + struct.pack(">ihii", count, 1, 0, 0) for name, count in topics.items()]
        return self.ask(_CREATE_TOPICS, _array(*each) + struct.pack(">ib", 3 * _TIMEOUT_MS, 0))

    def ping(self) -> None:
        """Sends ApiVersions v0, and doesn't wait for the response; see ``has_response``."""
        self._send(_API_VERSIONS, b"")

    def has_response(self, within: float) -> bool:
        """Whether the response to a ping arrives within so many seconds; if so, reads it."""
        if not select.select([self._socket], [], [], within)[0]:
            return False
        self._receive(within)
        return True

    def ask(self, api: tuple[int, int], body: bytes, timeout: float = 60) -> RoundTrip:
        """Sends one request (``api`` is its key and version) and waits for the response."""
        sent = now_ms()
        self._send(api, body)
        response = self._receive(timeout)
        return RoundTrip(sent, now_ms(), len(body), response)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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


def produce_body(topic: str, batch: bytes) -> bytes:
    """The body of a request PRODUCE with a record batch for partition 0."""
    data = struct.pack(">ii", 0, len(batch)) + batch
    return struct.pack(">hhi", -1, _ACKS, _TIMEOUT_MS) + _array(_string(topic) + _array(data))


def throttle_ms(response: bytes, *, first: bool) -> int:
    """``throttle_time_ms`` of a response: its first field (Fetch, CreateTopics) or its last one (Produce)."""
    return int.from_bytes(response[4:8] if first else response[-4:], signed=True)


def topic_errors(response: bytes) -> dict[str, tuple[int, str | None]]:
    """Error code and message by topic, from a CreateTopics v4 response."""
    (count,) = struct.unpack_from(">i", response, 8)
    at, topics = 12, {}
    for _ in range(count):
        name, at = _text(response, at)
        (code,) = struct.unpack_from(">h", response, at)
        message, at = _text(response, at + 2)
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
