"""The Java half as the host sees it: a Protocol, so that the host runs without a JVM in tests."""

from __future__ import annotations

import re
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from typing import Any, Protocol

from quotahost.broker import ClientUsage, LogDir
from quotahost.model import Client, ScopeKind
from quotahost.settings import Settings

# Codes of a scope on the way to the shim (org.quotahost.Scopes); the first four are ScopeKind's values.
NEWCOMER = 4
EXEMPT = 5
GROUP = 16
assert max(kind.value for kind in ScopeKind) < GROUP

_U32 = struct.Struct(">I")
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")


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
    """For each client of a batch and each quota type, in order: scope code, rate (NaN unlimited), source.

    A source is an index into ``suppliers``, which also holds the reasons of exemptions; -1 is nobody's answer.
    """

    codes: array[int] = field(default_factory=lambda: array("i"))
    rates: array[float] = field(default_factory=lambda: array("d"))
    groups: list[str] = field(default_factory=list)
    sources: array[int] = field(default_factory=lambda: array("i"))
    suppliers: Sequence[str] = ()


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

    def fence(self) -> bool:
        """Whether a fence stands in this JVM that holds a PAUSE."""
        ...

    def client_config(self) -> dict[str, str]:
        """Librdkafka's configuration of a client as this broker itself; holds secrets."""
        ...

    def librdkafka(self, config: Mapping[str, str]) -> dict[str, str]:
        """Librdkafka's form of a Java client's configuration: keystores as PEM, JAAS as user and password.

        Raises:
            Exception: Java's own, where a keystore can't be read.
        """
        ...

    def registered(self) -> dict[int, bool]:
        """Every registered broker, and whether it is fenced; waits."""
        ...

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers; waits."""
        ...

    def offline_log_dirs(self) -> tuple[str, ...]:
        """This broker's log directories that Kafka has given up."""
        ...

    def usage(self, most: int) -> list[ClientUsage]:
        """The busiest clients that have a quota of their own."""
        ...

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show a number."""
        ...

    def count(self, type: str, name: str, attribute: str, by: float) -> None:
        """Add to a number."""
        ...

    def forget(self, type: str, name: str) -> None:
        """Show the numbers of this name no longer."""
        ...

    def set_factor(self, value: float, reason: str) -> None:
        """The factor, 0..1, that holds from now on, and why, in words an operator reads."""
        ...

    def exempt(self, principals: Sequence[str], client_ids: Sequence[str], brokers_anonymous: bool) -> None:
        """Whom the fence never turns back: principals by name, and (if brokers are) ANONYMOUS by client-id."""
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


def plain(field: str) -> str:
    """The text of a field that org.quotahost.Escape made."""
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "\t" if m[2] == "t" else m[2], field)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse(data: bytes, handle: Any) -> Batch:
    """A batch from its bytes (org.quotahost.Batch says how they are laid out)."""
    (count,) = _U32.unpack_from(data)
    lengths = array("I", data[_U32.size : (1 + count) * _U32.size])
    if sys.byteorder == "little":
        lengths.byteswap()
    text = data[(1 + count) * _U32.size :].decode()
    texts = (text[start:end] for start, end in pairwise(accumulate(lengths, initial=0)))
    clients = list(islice(map(Client._make, zip(texts, texts, strict=False)), int(next(texts))))
    return Batch(clients, list(_events(texts)), handle)


def _events(texts: Iterator[str]) -> Iterator[Event]:
    for kind in texts:
        yield Event(kind, tuple(islice(texts, int(next(texts)))))
