"""What one broker's busiest clients use of their cluster-wide quotas; and whose quota an entry of a record is about.

The pipeline reads it in SQL (``pipeline/shares.py``), and answers with a record of :mod:`quotahost.records.shares`.
Both list clients: :class:`ClientKey` names one, and :func:`clients_of` declares the list, which is bounded so that it
fits a record.
"""

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, Protocol, TypeVar, get_type_hints

from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from quotahost.model import QuotaType
from quotahost.records.codec import IS_KEY, RECORD, As, Codec, NullIs, Refused, Versioned
from quotahost.records.fields import Millis, Name

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
        # A lone surrogate must not raise here: the codec refuses such a name in words.
        return len(self.principal.encode(errors="replace")) + len(self.client_id.encode(errors="replace"))


class _OfClient(Protocol):
    @property
    def key(self) -> ClientKey: ...


_Entry = TypeVar("_Entry", bound=_OfClient)


def fitting(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    """The first of them, as many as fit a record: MAX_CLIENTS, with names of MAX_NAMES bytes together."""
    names = 0
    for number, entry in enumerate(entries):
        names += entry.key.octets
        if number == MAX_CLIENTS or names > MAX_NAMES:
            return
        yield entry


ClusterId = Annotated[Name, Field(alias="clusterId"), NullIs("")]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quota = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_NameOfClient = Annotated[str, Field(max_length=MAX_NAMES)]
_KEY: Final = {
    "principal": Annotated[_NameOfClient, Field(alias="user")],
    "client_id": _NameOfClient,
    "quota_type": Literal[QuotaType.PRODUCE, QuotaType.FETCH],
}


def clients_of(entry: type[Any]) -> As:
    """Annotates the list of a record's clients; an ``entry`` is a dataclass of a ``key`` and numbers.

    In JSON its fields stand beside those of the key; one with a default, which is None, may be missing.
    """
    numbers = get_type_hints(entry, include_extras=True)
    del numbers["key"]
    optional = {each.name: NotRequired[numbers[each.name]] for each in fields(entry) if each.default is not MISSING}
    form: Any = TypedDict(f"{entry.__name__}Json", _KEY | numbers | optional)  # type: ignore[misc]  # made at run time
    key_of = itemgetter(*_KEY)

    def read(listed: list[dict[str, Any]], _: object) -> tuple[Any, ...]:
        clients = tuple(entry(ClientKey(*key_of(given)), *map(given.get, numbers)) for given in listed)
        keys = [client.key for client in clients]
        if len(keys) > MAX_CLIENTS or sum(key.octets for key in keys) > MAX_NAMES:
            raise Refused("size", f"more than {MAX_CLIENTS} clients, or names of more than {MAX_NAMES:,} bytes")
        if len(set(keys)) < len(keys):
            raise Refused("schema", "a client is listed more than once")
        return clients

    def write(entries: tuple[Any, ...]) -> list[dict[str, Any]]:
        return [client.key._asdict() | {name: getattr(client, name) for name in numbers} for client in fitting(entries)]

    return As(Annotated[list[form], Field(max_length=MAX_CLIENTS)], read, write)


@dataclass(frozen=True, slots=True)
class Used:
    """One client's use of its cluster-wide quota on one broker.

    Attributes:
        key: whose quota.
        rate: bytes/s as measured on that broker.
        demand: bytes/s that the client would use there; None if it would use whatever it gets.
        quota: bytes/s that it may use in the whole cluster.
        bytes: how many it moved on that broker since the broker's record before; None in records that don't tell.
    """

    key: ClientKey
    rate: Rate
    demand: Rate | None
    quota: Quota
    bytes: Rate | None = None


@with_config(RECORD)
@dataclass(frozen=True, slots=True)
class Usage(Versioned):
    """What one broker's busiest clients use.

    Attributes:
        broker: the broker's id.
        captured_at: when the rates were measured, in UTC.
        clients: one entry for each client, the busiest first.
        cluster: the id of the broker's cluster; "" while it is unknown.
    """

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]
    captured_at: Annotated[Millis, Field(alias="usageAt")]
    clients: Annotated[tuple[Used, ...], clients_of(Used)]
    cluster: ClusterId = ""


CODEC: Final = Codec(Usage, MAX_BYTES, lambda record: record.broker)
encode, decode = CODEC.encode, CODEC.decode
