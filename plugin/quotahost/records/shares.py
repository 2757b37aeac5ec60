"""How much of the cluster-wide client quotas one broker may give its clients.

The pipeline writes it to the compacted topic ``shares.topic`` under the broker's id; the supplier ``cluster-quota`` of
that broker reads it. The form is ``schemas/shares.json``.
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
from quotahost.records.fields import Long, Millis, Name


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker may let pass of one client's cluster-wide quota.

    Attributes:
        key: whose quota.
        share: bytes/s that this broker may let pass.
        quota: bytes/s that the client may use in the whole cluster.
    """

    key: ClientKey
    share: float
    quota: float


class ShareJson(KeyJson):
    """A Share, flat."""

    share: Rate
    quota: Quota


def _clients(listed: list[ShareJson], _: object) -> tuple[Share, ...]:
    return one_record(Share(key_of(c), c["share"], c["quota"]) for c in listed)


def _clients_json(clients: tuple[Share, ...]) -> list[dict[str, Any]]:
    return [key_json(each.key) | {"share": each.share, "quota": each.quota} for each in fitting(clients)]


_Listed = Annotated[list[ShareJson], Field(max_length=MAX_CLIENTS)]


@with_config(RECORD)
@dataclass(frozen=True, slots=True)
class Shares(Versioned):
    """All shares of one broker.

    Attributes:
        broker: the broker's id.
        run: when the pipeline that computed them was launched, in ms since 1970.
        sequence: the number of the record in its run; the larger (run, sequence) is the newer.
        computed_at: when they were computed, in UTC, by the pipeline's clock.
        clients: one entry for each client.
        cluster: the cluster's id, "" if the pipeline doesn't know it.
    """

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]
    run: Long
    sequence: Long
    computed_at: Millis
    clients: Annotated[tuple[Share, ...], As(_Listed, _clients, _clients_json)]
    cluster: ClusterId = ""


_ADAPTER: Final = TypeAdapter(Shares)


def encode(shares: Shares) -> bytes:
    """The shares as a record's value, with the first of its clients if not all fit; the key is the broker's id.

    Raises:
        Refused: no reader would take it: a share is negative, a name no valid Unicode, or a client there twice.
    """
    return write(_ADAPTER, shares.broker, shares, MAX_BYTES)


def decode(key: bytes | None, value: bytes) -> Shares:
    """The shares in a record of the topic.

    Raises:
        Refused: the bytes are none: size, json, version, schema or key. Nothing else is raised, whatever the bytes.
    """
    return read(_ADAPTER, key, value, MAX_BYTES)
