"""What a plugin learns of the cluster and of its broker: brokers, log directories, what clients use.

``Context.broker`` and the listener ``cluster_changed`` give these values to plugins. Public, by :mod:`quotahost.model`.
"""

from __future__ import annotations

from dataclasses import dataclass

from quotahost.model.quotas import QuotaType


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster as this broker last described it.

    Attributes:
        cluster_id: Kafka's id of the cluster; "" while it is unknown.
        brokers: ids of the brokers that are alive.
    """

    cluster_id: str
    brokers: frozenset[int]


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker, as DescribeLogDirs answers it (KIP-113, KIP-827).

    Attributes:
        broker: the broker's id.
        path: the directory; "" if the broker didn't answer.
        capacity: bytes of its file store; None if the broker doesn't report it.
        usable: free bytes of its file store; None if the broker doesn't report it.
        error: Kafka's name of what is wrong with the directory; "" for nothing.
    """

    broker: int
    path: str
    capacity: int | None
    usable: int | None
    error: str


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """What one client uses of a quota that it shares with no other client, as this broker measures it.

    Attributes:
        principal: its name; with ``client_id`` as in ``quotahost.model.Client``.
        client_id: may be empty.
        quota_type: PRODUCE or FETCH.
        rate: bytes/s, as Kafka measures it over its quota windows (``ClientQuotaManager``, byte-rate).
        limit: bytes/s that Kafka holds it to now; None is unlimited.
        delay: seconds by which Kafka delayed its responses: the mean of the delays of the last 30 to 60 s
            (throttle-time), 0 if there was none.
        idle: seconds since its last request of this type, to a quarter of a second.
    """

    principal: str
    client_id: str
    quota_type: QuotaType
    rate: float
    limit: float | None
    delay: float
    idle: float
