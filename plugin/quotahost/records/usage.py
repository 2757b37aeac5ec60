"""What one broker's busiest clients use of their cluster-wide quotas.

The task ``publish-usage`` of each broker writes it to the compacted topic ``__quotahost_usage`` under the broker's id;
the pipeline reads it (in SQL, ``pipeline/shares.py``) and divides the quotas by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, with_config

from quotahost.records.clients import MAX_BYTES, ClientKey, ClusterId, Quota, Rate, clients_of
from quotahost.records.codec import IS_KEY, RECORD, Codec, Versioned
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
    rate: Rate
    demand: Rate | None
    quota: Quota


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
