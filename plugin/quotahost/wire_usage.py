"""The JSON of what one broker's busiest clients use (``schemas/usage.json``). Unknown fields are ignored."""

from __future__ import annotations

from typing import Annotated, Final, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from quotahost.usage import MAX_CLIENTS, Usage, Used, fitting
from quotahost.wire_clients import (
    Broker,
    KeyJson,
    Quota,
    Rate,
    Version,
    check,
    key_json,
    key_of,
    read,
    time_json,
    written,
)
from quotahost.wire_read import Name, Time
from quotahost.wire_read import Refused as Refused


class UsedJson(KeyJson):
    """One client's use."""

    rate: Rate
    demand: Rate | None
    quota: Quota


@with_config(ConfigDict(strict=True))
class UsageJson(TypedDict):
    """A record's value."""

    version: Version
    clusterId: NotRequired[Name | None]
    brokerId: Broker
    usageAt: Time
    clients: Annotated[list[UsedJson], Field(max_length=MAX_CLIENTS)]


_ADAPTER: Final = TypeAdapter(UsageJson)


def encode(usage: Usage) -> bytes:
    """The usage as a record's value, with the first of its clients where not all fit; the key is the broker's id.

    Raises:
        Refused: no reader would take it: a rate is negative, a name no valid Unicode, or a client there twice.
    """
    told = {
        "brokerId": usage.broker,
        "usageAt": time_json(usage.taken_at),
        "clients": [_used_json(each) for each in fitting(usage.clients)],
    }
    value = written(told, usage.cluster)
    decode(usage.broker.encode(errors="replace"), value)
    return value


def _used_json(used: Used) -> dict[str, object]:
    return key_json(used.key) | {"rate": used.rate, "demand": used.demand, "quota": used.quota}


def decode(key: bytes | None, value: bytes) -> Usage:
    """The usage in a record of the topic.

    Raises:
        Refused: it is none. Nothing else is raised, whatever the bytes.
    """
    told = read(_ADAPTER, value)
    clients = [Used(key_of(c), c["rate"], c["demand"], c["quota"]) for c in told["clients"]]
    check(key, told["brokerId"], (used.key for used in clients))
    return Usage(told["brokerId"], told["usageAt"], tuple(clients), told.get("clusterId") or "")
