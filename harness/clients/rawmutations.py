"""Creates, grows and deletes topics over a ``RawClient``, in versions that know strict quotas (KIP-599) and older ones.

A client that asks in a strict version gets an error for each topic that is refused. For an older one the broker does
everything and then mutes the connection.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from harness.clients.raw import RawClient

Kind = Literal["create", "grow", "delete"]

QUOTA_EXCEEDED: Final = 89  # Errors.THROTTLING_QUOTA_EXCEEDED
_TIMEOUT_MS: Final = 30_000
# Key and version of CreateTopics, CreatePartitions and DeleteTopics; the strict ones are flexible (KIP-482), too.
_STRICT: Final = {"create": (19, 6), "grow": (37, 3), "delete": (20, 5)}
_OLDER: Final = {"create": (19, 4), "grow": (37, 1), "delete": (20, 3)}


@dataclass(frozen=True, slots=True)
class Mutated:
    """The answer to one request.

    Attributes:
        sent_ms: wall clock in ms before the request was sent.
        throttle_ms: ``throttle_time_ms``, for which the broker mutes the connection.
        errors: error code and message by topic, in the order of the answer; no message before DeleteTopics v5.
    """

    sent_ms: int
    throttle_ms: int
    errors: dict[str, tuple[int, str | None]]


def mutate_raw(
    client: RawClient, kind: Kind, topics: Mapping[str, int], *, strict: bool = True, validate_only: bool = False
) -> Mutated:
    """Sends one request for all topics and waits for its answer, which comes before the connection is muted.

    Args:
        client: a connection.
        kind: sends CreateTopics v6, CreatePartitions v3 or DeleteTopics v5; if not strict v4, v1 or v3.
        topics: the number of partitions that each topic shall have, by name; "delete" ignores the number.
        strict: whether the version is one that gets an error when the quota is exceeded.
        validate_only: the broker checks the request but changes nothing; not for "delete".
    """
    form = _Form(flexible=strict)
    body = (
        form.tags() + form.array([form.topic(kind, *each) for each in topics.items()]) + struct.pack(">i", _TIMEOUT_MS)
    )
    body += (b"" if kind == "delete" else struct.pack(">?", validate_only)) + form.tags()
    trip = client.ask((_STRICT if strict else _OLDER)[kind], body)
    answer = _Answer(trip.response, flexible=strict)
    return Mutated(trip.sent_ms, answer.throttle_ms, answer.errors(kind))


@dataclass(frozen=True, slots=True)
class _Form:
    """Writes the types of Kafka's protocol, in the old form or in the flexible one."""

    flexible: bool

    def tags(self) -> bytes:
        return b"\0" if self.flexible else b""

    def size(self, size: int, old: str) -> bytes:
        return bytes([size + 1]) if self.flexible else struct.pack(old, size)  # all are below 127 here

    def text(self, text: str) -> bytes:
        return self.size(len(text.encode()), ">h") + text.encode()

    def array(self, items: list[bytes]) -> bytes:
        return self.size(len(items), ">i") + b"".join(items)

    def topic(self, kind: Kind, name: str, partitions: int) -> bytes:
        if kind == "delete":
            return self.text(name)
        if kind == "grow":
            return self.text(name) + struct.pack(">i", partitions) + self.size(-1, ">i") + self.tags()
        return self.text(name) + struct.pack(">ih", partitions, 1) + self.array([]) * 2 + self.tags()


class _Answer:
    """Reads an answer, in the old form or in the flexible one."""

    def __init__(self, response: bytes, flexible: bool) -> None:
        self._data, self._at, self._flexible = response, 4, flexible  # behind the correlation id
        self._tags()
        self.throttle_ms = self._number(">i")

    def errors(self, kind: Kind) -> dict[str, tuple[int, str | None]]:
        return dict(self._topic(kind) for _ in range(self._size(">i")))

    def _topic(self, kind: Kind) -> tuple[str, tuple[int, str | None]]:
        name, code = self._text() or "", self._number(">h")
        message = self._text() if kind != "delete" or self._flexible else None
        if kind == "create" and self._flexible:
            self._created()
        self._tags()
        return name, (code, message)

    def _created(self) -> None:
        """Skips partitions, replicas and configs, each with name, value, three flags of one byte, and tags."""
        self._at += 6
        for _ in range(self._size(">i")):
            self._text(), self._text()
            self._at += 3
            self._tags()

    def _number(self, form: str) -> int:
        (number,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(number)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._number(">B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _size(self, old: str) -> int:
        return self._varint() - 1 if self._flexible else self._number(old)

    def _text(self) -> str | None:
        size = self._size(">h")
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def _tags(self) -> None:
        for _ in range(self._varint() if self._flexible else 0):
            self._varint()
            self._at += self._varint()
