"""The Java half as the host sees it: a Protocol, so that the host runs without a JVM in tests."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from quotahost.model import Client, ScopeKind
from quotahost.settings import Settings

# Codes of a scope on the way to the shim (org.quotahost.Scopes); the first four are ScopeKind's values.
NEWCOMER = 4
EXEMPT = 5
GROUP = 16
assert max(kind.value for kind in ScopeKind) < GROUP

_U32 = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in the broker: its kind and its particulars."""

    kind: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Clients to resolve and events, as taken from the inbox; ``handle`` is the shim's own object."""

    clients: Sequence[Client]
    events: Sequence[Event] = ()
    handle: Any = None


@dataclass(slots=True)
class Answers:
    """For each client of a batch and each quota type, in order: scope code and rate (NaN unlimited)."""

    codes: array[int] = field(default_factory=lambda: array("i"))
    rates: array[float] = field(default_factory=lambda: array("d"))
    groups: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Gauge:
    """One number of the shim: its MBean's type, name ("" for none), attribute, value."""

    type: str
    name: str
    attribute: str
    value: float


class Shim(Protocol):
    """What the host asks of Java."""

    def properties(self) -> dict[str, str]:
        """The broker properties under ``client.quota.callback.``, secrets included."""
        ...

    def broker(self) -> dict[str, str]:
        """A few of the broker's own properties, and ``inter.broker.principals`` (a line each)."""
        ...

    def starting(self, timeout: float) -> None:
        """The settings are read: the broker waits for ``ready`` at most this many seconds more."""
        ...

    def ready(self, live: Sequence[str]) -> None:
        """All plugins stand; these properties can be changed live."""
        ...

    def refuse(self, problem: str) -> None:
        """Stop the broker's start with this sentence."""
        ...

    def closing(self) -> bool:
        """Whether the broker is closing the host."""
        ...

    def configure(self, settings: Settings) -> None:
        """Hand on what the shim needs of the settings."""
        ...

    def take(self, timeout: float) -> Batch:
        """Wait for work, at most this many seconds. Renews the lease."""
        ...

    def known(self, principal: str | None, client_id: str | None) -> Batch:
        """The clients in the table that match; None matches all."""
        ...

    def unresolved(self) -> Batch:
        """The clients in the table whose supplier failed."""
        ...

    def publish(self, batch: Batch, answers: Answers) -> int:
        """Put answers into the table; how many clients differ from before."""
        ...

    def set_factor(self, value: float) -> None:
        """The factor, 0..1, that holds from now on."""
        ...

    def verdict(self, ticket: str, problem: str | None) -> None:
        """The answer to a "validate" event."""
        ...

    def plugin(self, name: str) -> None:
        """Show this plugin's error counter."""
        ...

    def plugin_failed(self, name: str) -> None:
        """Count an error of this plugin."""
        ...

    def gauges(self) -> list[Gauge]:
        """All numbers of the shim, now."""
        ...

    def log(self, logger: str, level: int, message: str) -> None:
        """A line for the broker's own log; level as in Python's logging."""
        ...

    def detach(self) -> None:
        """The calling thread ends and will not call the shim again."""
        ...


class _Reader:
    """Reads numbers and strings off the bytes of a batch (org.quotahost.Batch)."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        value: int = _U32.unpack_from(self._data, self._at)[0]
        self._at += _U32.size
        return value

    def text(self) -> str:
        length = self.number()
        start = self._at
        self._at = start + length
        return self._data[start : self._at].decode()


def parse(data: bytes, handle: Any) -> Batch:
    """A batch from its bytes."""
    read = _Reader(data)
    text = read.text
    clients = [Client(text(), text()) for _ in range(read.number())]
    events = [Event(text(), tuple(text() for _ in range(read.number()))) for _ in range(read.number())]
    return Batch(clients, events, handle)
