"""What clients use of cluster-wide quotas, and what share of these each broker has, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from quotahost.records.clients import (
    MAX_CLIENTS,
    Broker,
    ClientKey,
    KeyJson,
    Quota,
    Rate,
    Version,
    check,
    fitting,
    key_json,
    key_of,
    read,
    time_json,
    written,
)
from quotahost.records.codec import Name, Time

# TODO(merge) The JSON of what one broker's busiest clients use (``schemas/usage.json``). Unknown fields are
#   ignored.


@dataclass(frozen=True, slots=True)
class Used:
    """One client's use of its cluster-wide quota on one broker.

    Attributes:
        key: whose.
        rate: bytes/s as measured there.
        demand: bytes/s that it would use there; None wants all that it can get.
        quota: bytes/s that it may use in the whole cluster.
    """

    key: ClientKey
    rate: float
    demand: float | None
    quota: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What one broker tells of its busiest clients; ``captured_at`` in UTC, ``cluster`` "" while unknown."""

    broker: str
    captured_at: datetime
    clients: tuple[Used, ...]
    cluster: str = ""


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
        "usageAt": time_json(usage.captured_at),
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
