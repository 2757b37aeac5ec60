"""The record of one broker's shares of the cluster-wide client quotas, and the partition for this record.

The supplier ``cluster-quota`` reads only the partition that has its own broker's record.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from quotahost.records.codec import IS_KEY, Codec, Versioned
from quotahost.records.fields import Long, Millis, Name
from quotahost.records.usage import MAX_BYTES, Clients, ClusterId, OfClient, Quota, Rate

#: Numbers of partitions for a new topic: the first number that is not below the number of brokers, else the last.
# They are primes, so that broker ids in steps of 10 or 1,000 don't share a few partitions.
PARTITIONS: Final = (1, 7, 31, 127, 509, 1021)


def partitions_for(brokers: int) -> int:
    """The number of partitions of a new topic in a cluster with this number of brokers."""
    return next((number for number in PARTITIONS if number >= brokers), PARTITIONS[-1])


def partition_of(broker: str, partitions: int) -> int:
    """The partition of a broker's record in a topic with ``partitions`` of them; ``sql/shares.sql`` has the same rule.

    Kafka's hash of the key would let several of many brokers share a partition, and leave other partitions empty.
    """
    return int(broker) % partitions if broker.isascii() and broker.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Share(OfClient):
    """One broker's share of one client's cluster-wide quota."""

    share: Rate  # bytes/s that this broker may let pass
    quota: Quota  # bytes/s that the client may use in the whole cluster


@dataclass(frozen=True, slots=True)
class Shares(Versioned):
    """All shares of one broker."""

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]  # the broker's id
    run: Long  # when the pipeline that computed the shares was launched, in ms since 1970
    sequence: Long  # the number of the record in its run; the record with the larger (run, sequence) is newer
    computed_at: Millis  # when the shares were computed, in UTC, by the pipeline's clock
    clients: Clients[Share]  # one entry for each client
    cluster: ClusterId = ""  # the cluster's id, "" if the pipeline doesn't know it


CODEC: Final = Codec(Shares, MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode
