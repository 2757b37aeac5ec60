"""The Java half as the host sees it: a Protocol, so that the host runs without a JVM in tests."""

from __future__ import annotations

import re
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from typing import Any

from quotahost.model import (
    DEFAULT,
    Client,
    ClientQuotaChange,
    Cluster,
    Default,
    QuotaEntity,
    QuotaType,
    ScopeKind,
)

# TODO(merge) The fields of the inbox's events as values (org.quotahost.ClientQuotas, Inbox, Reconfiguration).


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


def client_quota(fields: tuple[str, ...]) -> ClientQuotaChange:
    """Type, kind and name of the user, kind and name of the client-id, rate or "" for removed."""
    quota_type, user_kind, user, client_kind, client_id, rate = fields
    entity = QuotaEntity(_name(user_kind, user), _name(client_kind, client_id))
    return ClientQuotaChange(QuotaType(quota_type), entity, float(rate) if rate else None)


def _name(kind: str, name: str) -> str | Default | None:
    if kind == "default":
        return DEFAULT
    return name if kind == "name" else None


def cluster(fields: tuple[str, ...]) -> Cluster:
    """The cluster's id, then the ids of its brokers."""
    cluster_id, *brokers = fields
    return Cluster(cluster_id, frozenset(int(broker) for broker in brokers))


def properties(fields: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The ticket, then names and values of all properties in turn."""
    ticket, *flat = fields
    return ticket, dict(zip(flat[::2], flat[1::2], strict=True))
