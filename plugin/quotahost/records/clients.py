"""What clients use of cluster-wide quotas, and what share of these each broker has, as frozen values."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar

from pydantic import Field, PlainValidator, TypeAdapter
from typing_extensions import TypedDict  # pydantic's, which needs it before Python 3.12

from quotahost.model import QuotaType
from quotahost.records.codec import Name, Refused, checked

# TODO(merge) What the records of usage and of shares have in common: names, rates, times, and every refusal
#   in words.


MAX_CLIENTS: Final = 256


MAX_NAMES: Final = 120_000  # bytes of all names in UTF-8; JSON may write each as six


class ClientKey(NamedTuple):
    """Whose quota: user and client-id as in ``quotahost.model.Client``, and the type."""

    principal: str
    client_id: str
    quota_type: QuotaType


class _OfClient(Protocol):
    """An entry of a record that belongs to one client."""

    @property
    def key(self) -> ClientKey:
        """Whose it is."""
        ...


_Entry = TypeVar("_Entry", bound=_OfClient)


def fitting(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    """The first of them, as many as one record holds: MAX_CLIENTS, with names of MAX_NAMES bytes together."""
    names = 0
    for number, entry in enumerate(entries):
        names += octets(entry.key)
        if number == MAX_CLIENTS or names > MAX_NAMES:
            return
        yield entry


def octets(key: ClientKey) -> int:
    """How long its names are, in bytes of UTF-8."""
    return len(key.principal.encode(errors="replace")) + len(key.client_id.encode(errors="replace"))


MAX_BYTES: Final = 1024 * 1024  # Kafka's own default limit of a record


VERSION: Final = 1


_TYPES: Final = {"PRODUCE": QuotaType.PRODUCE, "FETCH": QuotaType.FETCH}


T = TypeVar("T")


def _quota_type(value: object) -> QuotaType:
    if not isinstance(value, str) or value not in _TYPES:
        raise ValueError("must be PRODUCE or FETCH")
    return _TYPES[value]


Broker = Name


Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


Quota = Annotated[float, Field(gt=0, allow_inf_nan=False)]


Version = Annotated[int, Field(ge=VERSION, le=VERSION)]


class KeyJson(TypedDict):
    """Whose quota it is."""

    user: Annotated[str, Field(max_length=MAX_NAMES)]
    clientId: Annotated[str, Field(max_length=MAX_NAMES)]
    quotaType: Annotated[QuotaType, PlainValidator(_quota_type)]


def key_of(told: KeyJson) -> ClientKey:
    """Its value."""
    return ClientKey(told["user"], told["clientId"], told["quotaType"])


def key_json(key: ClientKey) -> dict[str, Any]:
    """Its JSON."""
    return {"user": key.principal, "clientId": key.client_id, "quotaType": key.quota_type.value}


def written(told: dict[str, Any], cluster: str) -> bytes:
    """A record's value; the cluster is left out while it is unknown."""
    named = {"version": VERSION, **({"clusterId": cluster} if cluster else {}), **told}
    return json.dumps(named, separators=(",", ":")).encode()


def time_json(time: datetime) -> str:
    """In UTC, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read(adapter: TypeAdapter[T], value: bytes) -> T:
    """The fields of a record's value that are known.

    Raises:
        Refused: size, json, version or schema.
    """
    return checked(adapter, value, MAX_BYTES)


def check(key: bytes | None, broker: str, clients: Iterable[ClientKey]) -> None:
    """What no schema says.

    Raises:
        Refused: the key is another broker's, a client is there twice, there are too many, or their names too long.
    """
    if key != broker.encode(errors="replace"):
        told = reprlib.repr(broker)
        raise Refused("key", f"the record's key is {reprlib.repr(key)}, but its brokerId {told}")
    keys = list(clients)
    if len(keys) > MAX_CLIENTS or math.fsum(map(octets, keys)) > MAX_NAMES:
        raise Refused("size", f"more than {MAX_CLIENTS} clients, or names of more than {MAX_NAMES:,} bytes")
    if len(set(keys)) < len(keys):
        raise Refused("schema", "clients: one is listed more than once")
