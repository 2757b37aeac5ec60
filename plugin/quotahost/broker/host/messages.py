"""The values that the host and Java hand to each other, and their form on the way (``protocol`` has the calls).

1. ``encode`` makes bytes of a call, which ``org.quotahost.host.Wire`` reads. A value is one letter for its type and
   then, big-endian, its content; texts, bytes and lists begin with their length. Answers come as JSON.
2. A ``Batch`` of clients and events comes out of Java's inbox.
3. The answers go back into Java's table, an ``Answer`` for each quota type. Beside them goes what suppliers in shadow
   would answer: a text that Java keeps and hands back without reading it (``shadow_text``, ``would_be``).
"""

import json
import struct
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from quotahost.broker.host.dump import BROKER, Ask, Tags
from quotahost.broker.host.dump import GROUP as GROUP_TAG
from quotahost.model import (
    DEFAULT,
    QUOTA_TYPES,
    Client,
    ClientQuotaChange,
    Cluster,
    Default,
    Factor,
    QuotaEntity,
    QuotaType,
    ScopeKind,
)
from quotahost.model.volumes import Affected

# Codes of a scope (org.quotahost.table.Scopes); smaller codes are ScopeKind's values.
NEWCOMER: Final = 4
GROUP: Final = 16
EACH: Final = -1  # in place of an index of distinct client-ids: each one of the principal may have another quota

_SIZED: Final = struct.Struct(">cI")
_LONG: Final = struct.Struct(">cq")
_DOUBLE: Final = struct.Struct(">cd")


class Reason(StrEnum):
    """Why a client is exempt: the first of these that applies. Java shows it in the place of a supplier."""

    EXCLUDED = "excluded"
    BROKER = "broker"
    PLUGIN = "plugin"


class Event(NamedTuple):
    """Something that happened in the broker: its kind and its particulars."""

    kind: str
    fields: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Clients to resolve and events, as taken from the inbox."""

    clients: Sequence[Client]
    events: Sequence[Event] = ()
    closing: bool = False  # the host has to end


class Answer(NamedTuple):
    """The quota of one type that a client has, or would have if a supplier were not in shadow."""

    code: int  # the scope's
    rate: float | None  # before the factor, in the unit of its quota type; None is unlimited
    group: str = ""  # the group's name, "" for another scope
    #: Who gives it, "" for nobody. Behind tabs stand the rates that others would give.
    supplier: str = ""

    @property
    def is_of_client_id(self) -> bool:
        return self.code in (_CLIENT, _CLIENT_ID)

    def tags(self, principal: str, client_id: str) -> Tags:
        """Who would share it: the tags that the scope of this client would have."""
        code = self.code
        if code == _CLIENT:
            return tag(principal), client_id
        if code == _USER:
            return tag(principal), ""
        if code == _CLIENT_ID:
            return "", client_id
        return (BROKER if code == _BROKER else f"{GROUP_TAG}{tag(self.group)}>"), ""


class Row(NamedTuple):
    """What many clients have alike."""

    answers: tuple[Answer, ...]  # by quota type
    distinct: int  # the client-ids of the principal whose answers may differ, by ``distinct_ids``; or EACH
    shadow: str = ""  # a ``shadow_text``


@dataclass(frozen=True, slots=True)
class Scoped:
    """A factor and whom it is for."""

    factor: Factor
    affected: Affected | None = None  # the topics whose writers it is for; None: it is for all clients
    full: bool = False  # the factor is 0 by what is known, and not only because something is unknown


class Gauge(NamedTuple):
    """One number of the shim: its MBean's type, name ("" for none), attribute, value."""

    type: str
    name: str
    attribute: str
    value: float


class ConfigRow(NamedTuple):
    """A property of a topic or a broker: whose, its name, its source (ConfigEntry.ConfigSource), its value."""

    owner: str
    name: str
    source: str
    value: str


def gauges(ask: Ask) -> list[Gauge]:
    return [Gauge(type, name, attribute, float(value)) for type, name, attribute, value in ask("gauges")]


def numbers_of(shown: Iterable[Gauge], *types: str) -> Mapping[str, Mapping[str, float]]:
    """By name, what a host shows under these types; of volumes by default (``monitor``, ``volume_evaluation``)."""
    numbers: dict[str, dict[str, float]] = defaultdict(dict)
    for gauge in shown:
        if gauge.type in (types or ("Volume", "VolumeLimits")):
            numbers[gauge.name][gauge.attribute] = gauge.value
    return numbers


# ---- calls: org.quotahost.host.Wire ----


def encode(value: object) -> bytes:
    """The bytes of None, a bool, int, float, text, bytes, an array of ints or doubles, or a list or tuple of these.

    Half a surrogate pair in a text, as in names of files that are not UTF-8, is escaped: what a plugin writes in a
    cause or a group must not end the host. Raises TypeError if it is no such value.
    """
    parts: list[bytes] = []
    _write(value, parts)
    return b"".join(parts)


def _write(value: object, parts: list[bytes]) -> None:
    if isinstance(value, str):
        utf8 = value.encode("utf-8", "backslashreplace")
        parts += (_SIZED.pack(b"S", len(utf8)), utf8)
    elif isinstance(value, bool) or value is None:
        parts.append(b"N" if value is None else b"T" if value else b"F")
    elif isinstance(value, int):
        parts.append(_LONG.pack(b"I", value))
    elif isinstance(value, float):
        parts.append(_DOUBLE.pack(b"D", value))
    elif isinstance(value, list | tuple):
        parts.append(_SIZED.pack(b"L", len(value)))
        for item in value:
            _write(item, parts)
    elif isinstance(value, bytes):
        parts += (_SIZED.pack(b"B", len(value)), value)
    elif isinstance(value, array):
        of = value.typecode
        parts.append(struct.pack(f">cI{len(value)}{of}", of.encode(), len(value), *value))
    else:
        raise TypeError(f"{type(value).__name__} has no form on the way to Java")


# ---- the fields of events: org.quotahost.inbox.Inbox, org.quotahost.host.Questions ----


def client_quota(fields: tuple[str, ...]) -> ClientQuotaChange:
    """From "client-quota": type, kind and name of the user, kind and name of the client-id, rate or "" if removed."""
    quota_type, user_kind, user, client_kind, client_id, rate = fields
    entity = QuotaEntity(_name(user_kind, user), _name(client_kind, client_id))
    return ClientQuotaChange(QuotaType(quota_type), entity, float(rate) if rate else None)


def _name(kind: str, name: str) -> str | Default | None:
    # The kind decides and not the name: Kafka calls a default "<default>", and a user may have that name.
    if kind == "default":
        return DEFAULT
    return name if kind == "name" else None


def cluster(fields: tuple[str, ...]) -> Cluster:
    """From "cluster": the cluster's id, then the ids of its brokers."""
    cluster_id, *brokers = fields
    return Cluster(cluster_id, frozenset(int(broker) for broker in brokers))


# ---- what a supplier in shadow would give ----------------------------------------------------------------------

_TEXTS: Final = 4096  # how many are remembered; most clients have the text of others
_CLIENT, _USER, _CLIENT_ID, _BROKER = (
    kind.value for kind in (ScopeKind.CLIENT, ScopeKind.USER, ScopeKind.CLIENT_ID, ScopeKind.BROKER)
)


@lru_cache(_TEXTS)
def shadow_text(would: tuple[Answer | None, ...]) -> str:
    """What would be, by quota type, as Java keeps it and hands it back without reading it; "" for nothing."""
    by_type = {of: answer for of, answer in zip(QUOTA_TYPES, would, strict=False) if answer is not None}
    # In ASCII: half a surrogate pair in a group's name would not get through to Java.
    return json.dumps(by_type, separators=(",", ":")) if by_type else ""


@lru_cache(_TEXTS)
def would_be(text: str, quota_type: QuotaType) -> Answer | None:
    """What ``shadow_text`` wrote of one type; None is nothing. Raises ValueError if it is no such text."""
    fields = json.loads(text).get(quota_type) if text else None
    return None if fields is None else Answer(*fields)


@lru_cache(_TEXTS)
def tag(name: str) -> str:
    """A principal's or group's name as Kafka's ``Sanitizer`` writes it into a metric tag: percent-encoded UTF-8."""
    # Python leaves the tilde as it is, Java's URLEncoder doesn't. Of half a surrogate pair Java makes a question mark.
    return quote(name, safe="", errors="replace").replace("~", "%7E")
