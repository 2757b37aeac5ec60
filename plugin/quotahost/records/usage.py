"""What one broker's busiest clients use of their cluster-wide quotas.

The task ``publish-usage`` of each broker writes it to the compacted topic ``usage.topic`` under the broker's id; the
pipeline reads it (in SQL, ``pipeline/shares.py``) and divides the quotas by it. The form is ``schemas/usage.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, with_config

from quotahost.records.clients import (
    MAX_BYTES,
    MAX_CLIENTS,
    ClientKey,
    ClusterId,
    KeyJson,
    Quota,
    Rate,
    fitting,
    key_json,
    key_of,
    one_record,
)
from quotahost.records.codec import read, write
from quotahost.records.declaration import IS_KEY, RECORD, As, Versioned
from quotahost.records.fields import Millis, Name


@dataclass(frozen=True, slots=True)
class Used:
    """One client's use of its cluster-wide quota on one broker.

    Attributes:
        key: whose quota.
        rate: bytes/s as measured on that broker.
        demand: bytes/s that the client would use there; None if it would use whatever it gets.
        quota: bytes/s that it may use in the whole cluster.
    """

    key: ClientKey
    rate: float
    demand: float | None
    quota: float


class UsedJson(KeyJson):
    """A Used, flat."""

    rate: Rate
    demand: Rate | None
    quota: Quota


def _clients(listed: list[UsedJson], _: object) -> tuple[Used, ...]:
    return one_record(Used(key_of(c), c["rate"], c["demand"], c["quota"]) for c in listed)


def _clients_json(clients: tuple[Used, ...]) -> list[dict[str, Any]]:
    return [
        key_json(each.key) | {"rate": each.rate, "demand": each.demand, "quota": each.quota}
        for each in fitting(clients)
    ]


_Listed = Annotated[list[UsedJson], Field(max_length=MAX_CLIENTS)]


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
    clients: Annotated[tuple[Used, ...], As(_Listed, _clients, _clients_json)]
    cluster: ClusterId = ""


_ADAPTER: Final = TypeAdapter(Usage)


def encode(usage: Usage) -> bytes:
    """The usage as a record's value, with the first of its clients if not all fit; the key is the broker's id.

    Raises:
        Refused: no reader would take it: a rate is negative, a name no valid Unicode, or a client there twice.
    """
    return write(_ADAPTER, usage.broker, usage, MAX_BYTES)


def decode(key: bytes | None, value: bytes) -> Usage:
    """The usage in a record of the topic.

    Raises:
        Refused: the bytes are none: size, json, version, schema or key. Nothing else is raised, whatever the bytes.
    """
    return read(_ADAPTER, key, value, MAX_BYTES)
