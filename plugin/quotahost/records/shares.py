"""How much of the cluster-wide client quotas one broker may give its clients, and in which partition that is told.

The supplier ``cluster-quota`` reads only the partition of the topic where its broker's record is.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from quotahost.records.codec import IS_KEY, Codec, Versioned
from quotahost.records.fields import Long, Millis, Name
from quotahost.records.usage import MAX_BYTES, Clients, ClusterId, OfClient, Quota, Rate

#: Partitions that the topic is made with: the first number that is no less than the number of brokers, else the last.
# Primes, so that ids in steps of 10 or 1,000 don't meet in a few partitions.
PARTITIONS: Final = (1, 7, 31, 127, 509, 1021)


def partitions_for(brokers: int) -> int:
    """How many partitions the topic gets in a cluster of so many brokers."""
    return next((number for number in PARTITIONS if number >= brokers), PARTITIONS[-1])


def partition_of(broker: str, partitions: int) -> int:
    """The partition of a broker's record in a topic of so many partitions; ``sql/shares.sql`` has the same rule.

    Not Kafka's hash of the key, by which several of many brokers share a partition while others stay empty.
    """
    return int(broker) % partitions if broker.isascii() and broker.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Share(OfClient):
    """What one broker may let pass of one client's cluster-wide quota."""

    share: Rate  # bytes/s that this broker may let pass
    quota: Quota  # bytes/s that the client may use in the whole cluster


@dataclass(frozen=True, slots=True)
class Shares(Versioned):
    """All shares of one broker."""

    broker: Annotated[Name, Field(alias="brokerId"), IS_KEY]  # the broker's id
    run: Long  # when the pipeline that computed them was launched, in ms since 1970
    sequence: Long  # the number of the record in its run; the larger (run, sequence) is the newer
    computed_at: Millis  # when they were computed, in UTC, by the pipeline's clock
    clients: Clients[Share]  # one entry for each client
    cluster: ClusterId = ""  # the cluster's id, "" if the pipeline doesn't know it


CODEC: Final = Codec(Shares, MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode
