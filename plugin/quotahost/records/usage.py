"""The record of how much one broker's busiest clients use of their cluster-wide quotas, and the list of such clients.

The pipeline reads it in SQL (``pipeline/shares.py``), and answers with a record of :mod:`quotahost.records.shares`.
Both records have a list of clients: :class:`ClientKey` identifies an entry, and ``Clients`` is the bounded list.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, WrapSerializer

from quotahost.model import QuotaType
from quotahost.records.codec import IS_KEY, As, Codec, NullIs, Record, Refused, Versioned
from quotahost.records.fields import Millis, Name

MAX_BYTES: Final = 1024 * 1024  # Kafka's own default limit of a record
MAX_CLIENTS: Final = 256
MAX_NAMES: Final = 120_000  # bytes of all names in UTF-8; JSON may write each byte as six


class ClientKey(NamedTuple):
    """The owner of a quota (principal and client-id as in ``quotahost.model.Client``), and the quota's type."""

    principal: str
    client_id: str
    quota_type: QuotaType

    @property
    def octets(self) -> int:
        """The length of both names together, in bytes of UTF-8."""
        # A lone surrogate must not raise here: the codec refuses such a name in words.
        return len(self.principal.encode(errors="replace")) + len(self.client_id.encode(errors="replace"))


ClusterId = Annotated[Name, Field(alias="clusterId"), NullIs("")]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quota = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_NameOfClient = Annotated[str, Field(max_length=MAX_NAMES)]
_OF_BYTES: Final = As(Literal[QuotaType.PRODUCE, QuotaType.FETCH], lambda given, _: given, lambda given: given)


@dataclass(frozen=True, slots=True)
class OfClient(Record):
    """An entry of a record's list of clients. The first three fields are those of a ClientKey."""

    user: _NameOfClient
    client_id: _NameOfClient
    quota_type: Annotated[QuotaType, _OF_BYTES]

    @property
    def key(self) -> ClientKey:
        return ClientKey(self.user, self.client_id, self.quota_type)


_T = TypeVar("_T")
_Entry = TypeVar("_Entry", bound=OfClient)


def fitting(entries: Iterable[_T], most: int, room: int, length: Callable[[_T], int]) -> Iterator[_T]:
    """The first entries that fit a record: at most ``most``, whose names together are not longer than ``room``."""
    names = 0
    for number, entry in enumerate(entries):
        names += length(entry)
        if number == most or names > room:
            return
        yield entry


def _bounded(clients: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
    keys = [client.key for client in clients]
    if sum(key.octets for key in keys) > MAX_NAMES:
        raise Refused("size", f"names of more than {MAX_NAMES:,} bytes")
    if len(set(keys)) < len(keys):
        raise Refused("schema", "a client is listed more than once")
    return clients


def _write(clients: Iterable[OfClient], as_json: Any) -> Any:
    return as_json(tuple(fitting(clients, MAX_CLIENTS, MAX_NAMES, lambda client: client.key.octets)))


#: The list of a record's clients, each once.
Clients = Annotated[tuple[_Entry, ...], Field(max_length=MAX_CLIENTS), AfterValidator(_bounded), WrapSerializer(_write)]


@dataclass(frozen=True, slots=True)
class Used(OfClient):
    """One client's use of its cluster-wide quota on one broker."""

    rate: Rate  # bytes/s as measured on that broker
    demand: Rate | None  # bytes/s that the client would use there; None if it would use all that it gets
    quota: Quota  # bytes/s that the client may use in the whole cluster
    #: The bytes that the client moved on that broker since the broker's previous record; None if the record has none.
    bytes: Rate | None = None


@dataclass(frozen=True, slots=True)
class Usage(Versioned):
    """The use of one broker's busiest clients."""

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]  # the broker's id
    captured_at: Annotated[Millis, Field(alias="usageAt")]  # when the rates were measured, in UTC
    clients: Clients[Used]  # one entry for each client, the busiest first
    cluster: ClusterId = ""  # the id of the broker's cluster; "" while it is unknown


CODEC: Final = Codec(Usage, MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode
