"""How much of the cluster-wide client quotas one broker may give its clients.

The pipeline writes it to the compacted topic ``shares.topic`` under the broker's id; the supplier ``cluster-quota`` of
that broker reads it. The form is ``schemas/shares.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, with_config

from quotahost.records.clients import MAX_BYTES, ClientKey, ClusterId, Quota, Rate, clients_of
from quotahost.records.codec import Codec
from quotahost.records.declaration import IS_KEY, RECORD, Versioned
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
    share: Rate
    quota: Quota


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
    clients: Annotated[tuple[Share, ...], clients_of(Share)]
    cluster: ClusterId = ""


_CODEC: Final = Codec(Shares, MAX_BYTES, lambda record: record.broker)
encode, decode = _CODEC.encode, _CODEC.decode
