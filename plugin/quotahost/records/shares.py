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
from quotahost.records.codec import Long, Name, Time

# TODO(merge) The JSON of one broker's shares of the cluster-wide quotas (``schemas/shares.json``). Unknown
#   fields are ignored.


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker may let pass of one client's cluster-wide quota; both in bytes/s."""

    key: ClientKey
    share: float
    quota: float


@dataclass(frozen=True, slots=True)
class Shares:
    """All shares of one broker.

    Attributes:
        broker: its id.
        run: when the pipeline that computed them was started, in ms since 1970.
        sequence: counts within the run; the larger (run, sequence) is the newer.
        computed_at: in UTC, by the pipeline's clock.
        clients: one for each client.
        cluster: its id, "" if the pipeline doesn't know it.
    """

    broker: str
    run: int
    sequence: int
    computed_at: datetime
    clients: tuple[Share, ...]
    cluster: str = ""


class ShareJson(KeyJson):
    """One client's share."""

    share: Rate
    quota: Quota


@with_config(ConfigDict(strict=True))
class SharesJson(TypedDict):
    """A record's value."""

    version: Version
    clusterId: NotRequired[Name | None]
    brokerId: Broker
    run: Long
    sequence: Long
    computedAt: Time
    clients: Annotated[list[ShareJson], Field(max_length=MAX_CLIENTS)]


_ADAPTER: Final = TypeAdapter(SharesJson)


def encode(shares: Shares) -> bytes:
    """The shares as a record's value, with the first of its clients where not all fit; the key is the broker's id.

    Raises:
        Refused: no reader would take it: a share is negative, a name no valid Unicode, or a client there twice.
    """
    told = {
        "brokerId": shares.broker,
        "run": shares.run,
        "sequence": shares.sequence,
        "computedAt": time_json(shares.computed_at),
        "clients": [
            key_json(each.key) | {"share": each.share, "quota": each.quota}
            for each in fitting(shares.clients)
        ],
    }
    value = written(told, shares.cluster)
    decode(shares.broker.encode(errors="replace"), value)
    return value


def decode(key: bytes | None, value: bytes) -> Shares:
    """The shares in a record of the topic.

    Raises:
        Refused: it holds none. Nothing else is raised, whatever the bytes.
    """
    told = read(_ADAPTER, value)
    clients = [Share(key_of(c), c["share"], c["quota"]) for c in told["clients"]]
    check(key, told["brokerId"], (each.key for each in clients))
    return Shares(
        told["brokerId"],
        told["run"],
        told["sequence"],
        told["computedAt"],
        tuple(clients),
        told.get("clusterId") or "",
    )
