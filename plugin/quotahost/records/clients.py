"""What the records of usage and of shares have in common: whose quota an entry is about, and how many fit a record.

:mod:`quotahost.records.usage` and :mod:`quotahost.records.shares` are the two records; the supplier ``cluster-quota``
and the pipeline name clients by :class:`ClientKey`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar

from pydantic import Field, PlainValidator
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import QuotaType
from quotahost.records.codec import Refused
from quotahost.records.declaration import NullIs
from quotahost.records.fields import Name

MAX_BYTES: Final = 1024 * 1024  # Kafka's own default limit of a record
MAX_CLIENTS: Final = 256
MAX_NAMES: Final = 120_000  # bytes of all names in UTF-8; JSON may write each as six


class ClientKey(NamedTuple):
    """Whose quota: principal and client-id as in ``quotahost.model.Client``, and the type."""

    principal: str
    client_id: str
    quota_type: QuotaType

    @property
    def octets(self) -> int:
        """How long the two names are together, in bytes of UTF-8."""
        return len(self.principal.encode(errors="replace")) + len(self.client_id.encode(errors="replace"))


class _OfClient(Protocol):
    """An entry of a record that belongs to one client."""

    @property
    def key(self) -> ClientKey:
        """Whose it is."""
        ...


_Entry = TypeVar("_Entry", bound=_OfClient)


def fitting(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    """The first of them, as many as fit a record: MAX_CLIENTS, with names of MAX_NAMES bytes together."""
    names = 0
    for number, entry in enumerate(entries):
        names += entry.key.octets
        if number == MAX_CLIENTS or names > MAX_NAMES:
            return
        yield entry


# ---- JSON ------------------------------------------------------------------------------------------

_TYPES: Final = {"PRODUCE": QuotaType.PRODUCE, "FETCH": QuotaType.FETCH}


def _quota_type(value: object) -> QuotaType:
    if not isinstance(value, str) or value not in _TYPES:
        raise ValueError("must be PRODUCE or FETCH")
    return _TYPES[value]


ClusterId = Annotated[Name, Field(alias="clusterId"), NullIs("")]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quota = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class KeyJson(TypedDict):
    """A ClientKey; ``user`` is the principal."""

    user: Annotated[str, Field(max_length=MAX_NAMES)]
    clientId: Annotated[str, Field(max_length=MAX_NAMES)]
    quotaType: Annotated[QuotaType, PlainValidator(_quota_type)]


def key_of(fields: KeyJson) -> ClientKey:
    """The value of its JSON."""
    return ClientKey(fields["user"], fields["clientId"], fields["quotaType"])


def key_json(key: ClientKey) -> dict[str, Any]:
    """The JSON of a key."""
    return {"user": key.principal, "clientId": key.client_id, "quotaType": key.quota_type.value}


def one_record(entries: Iterable[_Entry]) -> tuple[_Entry, ...]:
    """The entries of one record.

    Raises:
        Refused: size or schema: they don't fit a record, or a client is listed twice.
    """
    found = tuple(entries)
    keys = [entry.key for entry in found]
    if len(keys) > MAX_CLIENTS or sum(key.octets for key in keys) > MAX_NAMES:
        raise Refused("size", f"more than {MAX_CLIENTS} clients, or names of more than {MAX_NAMES:,} bytes")
    if len(set(keys)) < len(keys):
        raise Refused("schema", "a client is listed more than once")
    return found
