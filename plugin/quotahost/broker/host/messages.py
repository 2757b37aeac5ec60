"""This module has the values that the host and Java exchange, and their encoding (``protocol`` has the calls).

1. ``encode`` turns a call into bytes, which ``org.quotahost.host.Wire`` reads. A value is one letter for its type, then
   its content, big-endian; texts, bytes and lists begin with their length. Answers come as JSON.
2. The host takes a ``Batch`` of clients and events from Java's inbox.
3. The host puts an ``Answer`` for each quota type into Java's table. With the answers goes a text of the would-be
   quotas, which Java keeps and returns without reading it (``shadow_text``, ``would_be``).
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

from quotahost.broker.host.dump import BROKER, GROUP, Ask, Tags
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

NEWCOMER: Final = 4  # a code of scopes that no ScopeKind has (org.quotahost.table.Scopes)
EACH: Final = -1  # instead of an index of distinct client-ids: each client-id of the principal may have its own quota

_SIZED: Final = struct.Struct(">cI")
_LONG: Final = struct.Struct(">cq")
_DOUBLE: Final = struct.Struct(">cd")


class Reason(StrEnum):
    """Why a client is exempt: the first reason that applies. Java shows the reason instead of a supplier."""

    EXCLUDED = "excluded"
    BROKER = "broker"
    PLUGIN = "plugin"


class Event(NamedTuple):
    """An event in the broker: its kind and its fields."""

    kind: str
    fields: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Clients that need answers, and events, as taken from the inbox."""

    clients: Sequence[Client]
    events: Sequence[Event] = ()
    closing: bool = False  # the host must end


class Answer(NamedTuple):
    """A client's quota of one type, or the quota that it would have if a supplier were not in shadow."""

    code: int  # the code of the scope
    rate: float | None  # before the factor, in the unit of the quota type; None is unlimited
    group: str = ""  # the group's name, "" for another scope
    #: The supplier that gives the quota, "" for none. The other suppliers' rates follow, separated by tabs.
    supplier: str = ""

    @property
    def is_of_client_id(self) -> bool:
        return self.code in (_CLIENT, _CLIENT_ID)

    def tags(self, principal: str, client_id: str) -> Tags:
        """The tags of the scope that would share the quota, for this client."""
        code = self.code
        if code == _CLIENT:
            return tag(principal), client_id
        if code == _USER:
            return tag(principal), ""
        if code == _CLIENT_ID:
            return "", client_id
        return (BROKER if code == _BROKER else f"{GROUP}{tag(self.group)}>"), ""


class Row(NamedTuple):
    """The answers that many clients have in common."""

    answers: tuple[Answer, ...]  # by quota type
    distinct: int  # the number of a set in ``distinct_ids``: client-ids whose answers may differ; or EACH
    shadow: str = ""  # the would-be quotas (``shadow_text``)


@dataclass(frozen=True, slots=True)
class Scoped:
    """A factor and the clients that it is for."""

    factor: Factor
    affected: Affected | None = None  # the factor is for the writers of these topics; None: for all clients
    full: bool = False  # known volumes make the factor 0, not only unknown ones


class Gauge(NamedTuple):
    """One number that the shim shows: its MBean's type, name ("" for none), attribute and value."""

    type: str
    name: str
    attribute: str
    value: float


class ConfigRow(NamedTuple):
    """A property of a topic or broker (its owner): name, source (ConfigEntry.ConfigSource) and value."""

    owner: str
    name: str
    source: str
    value: str


def gauges(ask: Ask) -> list[Gauge]:
    return [Gauge(type, name, attribute, float(value)) for type, name, attribute, value in ask("gauges")]


def numbers_of(shown: Iterable[Gauge], *types: str) -> Mapping[str, Mapping[str, float]]:
    """The numbers of these types by name; by default those of volumes (``monitor``, ``volume_evaluation``)."""
    numbers: dict[str, dict[str, float]] = defaultdict(dict)
    for gauge in shown:
        if gauge.type in (types or ("Volume", "VolumeLimits")):
            numbers[gauge.name][gauge.attribute] = gauge.value
    return numbers


# ---- calls: org.quotahost.host.Wire ----


def encode(value: object) -> bytes:
    """Encode None, a bool, int, float, text, bytes, an array of ints or doubles, or a list or tuple of these.

    Half a surrogate pair in a text, as in file names that are not UTF-8, is escaped: a plugin's cause or group name
    must not end the host. Raises TypeError for any other value.
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
    """Decode "client-quota": type, kind and name of the user, kind and name of the client-id, rate ("" if removed)."""
    quota_type, user_kind, user, client_kind, client_id, rate = fields
    entity = QuotaEntity(_name(user_kind, user), _name(client_kind, client_id))
    return ClientQuotaChange(QuotaType(quota_type), entity, float(rate) if rate else None)


def _name(kind: str, name: str) -> str | Default | None:
    # The kind decides, not the name: Kafka calls a default "<default>", and a user may have that name.
    if kind == "default":
        return DEFAULT
    return name if kind == "name" else None


def cluster(fields: tuple[str, ...]) -> Cluster:
    """Decode "cluster": the cluster's id, then the ids of its brokers."""
    cluster_id, *brokers = fields
    return Cluster(cluster_id, frozenset(int(broker) for broker in brokers))


# ---- what a supplier in shadow would give ----------------------------------------------------------------------

_TEXTS: Final = 4096  # the size of each cache; most clients have the same text as others
_CLIENT, _USER, _CLIENT_ID, _BROKER = (
    kind.value for kind in (ScopeKind.CLIENT, ScopeKind.USER, ScopeKind.CLIENT_ID, ScopeKind.BROKER)
)


@lru_cache(_TEXTS)
def shadow_text(would: tuple[Answer | None, ...]) -> str:
    """The would-be quotas by quota type, as a text that Java keeps and returns without reading it; "" for none."""
    by_type = {of: answer for of, answer in zip(QUOTA_TYPES, would, strict=False) if answer is not None}
    # json.dumps() writes ASCII: half a surrogate pair in a group's name could not be sent to Java.
    return json.dumps(by_type, separators=(",", ":")) if by_type else ""


@lru_cache(_TEXTS)
def would_be(text: str, quota_type: QuotaType) -> Answer | None:
    """The would-be quota of one type in a ``shadow_text``; None if it has none. Raises ValueError for another text."""
    fields = json.loads(text).get(quota_type) if text else None
    return None if fields is None else Answer(*fields)


@lru_cache(_TEXTS)
def tag(name: str) -> str:
    """A principal's or group's name as Kafka's ``Sanitizer`` writes it into a metric tag: percent-encoded UTF-8."""
    # Java's URLEncoder encodes the tilde, which quote() doesn't, and turns half a surrogate pair into a question mark.
    return quote(name, safe="", errors="replace").replace("~", "%7E")
