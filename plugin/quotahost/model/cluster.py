"""Frozen value types that every other module speaks in: clients, quotas, scopes, factors, volumes, snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from quotahost.model.quotas import QuotaType

# TODO(merge) What a plugin may ask of the broker that it lives in, and the numbers that it shows there.


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the broker last told of its cluster: id ("" while unknown) and alive broker ids."""

    cluster_id: str
    brokers: frozenset[int]


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker, as DescribeLogDirs answers it (KIP-113, KIP-827).

    ``path`` is "" if the broker didn't answer; capacity and usable are bytes of its file store, None if the
    broker doesn't say; ``error`` is Kafka's name of what is wrong with it, "" for nothing.
    """

    broker: int
    path: str
    capacity: int | None
    usable: int | None
    error: str


@dataclass(frozen=True, slots=True)
class ClientUsage:
    """What one client uses of one quota that is its own, as this broker measures it.

    Attributes:
        principal: its name; with ``client_id`` as in ``quotahost.model.Client``.
        client_id: may be empty.
        quota_type: PRODUCE or FETCH.
        rate: bytes/s, as Kafka measures it over its quota windows (``ClientQuotaManager``, byte-rate).
        limit: bytes/s that Kafka holds it to now; None is unlimited.
        delay: seconds by which Kafka has delayed its responses of late: the mean of the delays of the last 30
            to 60 s (throttle-time), 0 if there was none.
        idle: seconds since it last asked for this type, to a quarter of a second.
    """

    principal: str
    client_id: str
    quota_type: QuotaType
    rate: float
    limit: float | None
    delay: float
    idle: float
