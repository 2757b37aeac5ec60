"""The four roles that a plugin can take, and what a supplier may listen to, as Protocols; ``Role`` lists the roles.

The contract that they live under is in :mod:`quotahost.api`.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from quotahost.model import (
    Client,
    ClientQuotaChange,
    Cluster,
    ClusterVolumes,
    Factor,
    Quota,
    QuotaType,
    Volume,
)


@runtime_checkable
class QuotaSupplier(Protocol):
    """Who gets what: a client's stable quota (proposal 035, QuotaSupplier)."""

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of this client, or None: the next supplier in the list is asked.

        Whether all are asked, and the smallest rate counts, is for ``supplier.combine`` to say.

        Called once for each quota type when a client is first seen, and again after
        ``answers_changed``. If no supplier has an answer the client is unlimited.
        """
        ...


@runtime_checkable
class ClientQuotaListener(Protocol):
    """A supplier that also wants Kafka's own client quotas, stored ones included."""

    def client_quota_changed(self, change: ClientQuotaChange) -> None:
        """A client quota was set or removed (kafka-configs.sh, Admin API). Stored ones come first."""
        ...


@runtime_checkable
class ClusterListener(Protocol):
    """A supplier that also wants to know the brokers of the cluster."""

    def cluster_changed(self, cluster: Cluster) -> None:
        """The set of alive brokers may have changed."""
        ...


@runtime_checkable
class Ticking(Protocol):
    """A supplier whose answers also change with the time."""

    def tick(self) -> None:
        """Call ``answers_changed`` if the time has changed an answer; about once a second, host thread."""
        ...


@runtime_checkable
class QuotaFactorSource(Protocol):
    """How much of the quotas is left right now (proposal 035, QuotaFactorSource)."""

    def read(self) -> ClusterVolumes | Factor | None:
        """Volumes (the policy makes the factor of them), or a Factor where there are no volumes.

        Called every ``factor.interval``. None: not known yet; the fallback holds after ``startup.grace``.
        """
        ...


@runtime_checkable
class QuotaPolicy(Protocol):
    """How full is too full (proposal 035, QuotaPolicy); the smallest factor of all volumes holds."""

    def quota_factor(self, volume: Volume) -> float:
        """The share of the quota left, 0.0 (hard limit breached) to 1.0 (below the soft limit).

        Asked for every volume when the source's volumes have changed; at every read if the policy has an
        attribute ``depends_on_time`` that is true.
        """
        ...


@runtime_checkable
class DataSourceTask(Protocol):
    """Periodic work, such as publishing this broker's volumes (proposal 035, DataSourceTask)."""

    period: timedelta

    def run(self) -> None:
        """Do the work once. May block; should end within the period."""
        ...


class Role(StrEnum):
    """What a plugin can be, in the order in which a host builds its plugins; as text, in an operator's words.

    Attributes:
        group: the entry point group in which packages offer plugins of this role.
        broker_property: the property that names the plugins of this role, without ``client.quota.callback.``.
        protocol: the methods that such a plugin must have.
    """

    group: str
    broker_property: str
    protocol: type

    SUPPLIER = "supplier", "quotahost.suppliers", "supplier", QuotaSupplier
    FACTOR_SOURCE = "factor source", "quotahost.factor_sources", "factor.source", QuotaFactorSource
    POLICY = "policy", "quotahost.policies", "policy", QuotaPolicy
    TASK = "task", "quotahost.tasks", "tasks", DataSourceTask

    def __new__(cls, words: str, group: str, broker_property: str, protocol: type) -> Role:
        """A text with three attributes."""
        role = str.__new__(cls, words)
        role._value_ = words
        role.group, role.broker_property, role.protocol = group, broker_property, protocol
        return role
