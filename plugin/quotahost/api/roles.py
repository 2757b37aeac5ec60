"""The four roles of a plugin as Protocols: which methods each has, must have or may have; and the list of the roles.

A plugin need not inherit from a Protocol: it is enough to have the methods. :class:`Role` is the one list of the roles
from which quotahost finds, builds and checks plugins (:mod:`quotahost.broker.discovery`).
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from quotahost.model import Client, ClusterVolumes, Factor, Limit, Quota, QuotaType, Volume


@runtime_checkable
class QuotaSupplier(Protocol):
    """Answers what a client's quota is, before any factor (proposal 035, QuotaSupplier).

    It may have the methods ``tick``, ``distinct_client_ids`` and those that hear Kafka's news (contract 10, 11, 15).
    """

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of this client; None if this supplier has none for it.

        The host asks once for each quota type when it first sees a client, and again after ``answers_changed``.
        After None it asks the next supplier of the property ``supplier``. With
        ``supplier.combine=most-constraining`` it asks all of them, and the smallest rate decides. A client for which
        no supplier has a quota is unlimited.
        """


@runtime_checkable
class QuotaFactorSource(Protocol):
    """Answers how full the volumes are, or how much of the quotas is left (proposal 035, QuotaFactorSource).

    It may be for single ``quota_types`` (contract 14).
    """

    def read(self) -> ClusterVolumes | Factor | float | None:
        """The volumes, of which the policy makes a factor; or the factor itself, for a source that knows no volumes.

        A Factor can say why it is below 1. A bare number from 0 to 1 means the same without a reason of its own.
        Called every ``factor.interval``. None means that the source knows nothing: after ``startup.grace`` or, once
        it has known something, after ``validity``, the host applies ``fallback.action``.
        """


@runtime_checkable
class QuotaPolicy(Protocol):
    """Decides the factor that follows from how full a volume is (proposal 035, QuotaPolicy).

    It may be LimitAware, and a FactorListener (contract 12, 13).
    """

    def quota_factor(self, volume: Volume) -> float:
        """The part of the quota that is left, from 0.0 (hard limit reached) to 1.0 (at or below the soft limit).

        The smallest factor of all volumes is the one in force. The host asks for every volume whenever the factor
        source's volumes have changed. If the policy has an attribute ``depends_on_time`` that is true, the host asks
        after every ``read``.
        """


@runtime_checkable
class LimitAware(Protocol):
    """A policy that can be asked for its limits (proposal 035, QuotaPolicy: getSoftLimit and the three beside it).

    The host asks for the metrics, and to hold a PAUSE; for the rest the factor is what ``quota_factor`` says
    (contract 12). They are asked by volume, because a volume may have limits of its own (the proposal's snapshot note
    2).
    """

    def soft_limit(self, volume: Volume) -> Limit | None:
        """From which level on the policy may lower the factor of this volume; None if it has no such level.

        The level is fixed (bytes consumed or free) or relative (percent free), as the type of the limit says.
        """

    def hard_limit(self, volume: Volume) -> Limit | None:
        """At which level the factor of this volume is 0; None if it has no such level. Not reached before the soft one.

        With a soft limit alone, the metrics show the volume's capacity as the hard limit.
        """

    def breaches_soft_limit(self, volume: Volume) -> bool:
        """Whether the volume breaches the soft limit; if it doesn't, its factor is 1."""

    def breaches_hard_limit(self, volume: Volume) -> bool:
        """Whether the volume breaches the hard limit; then it breaches the soft one, too, and its factor is 0."""


@runtime_checkable
class FactorListener(Protocol):
    """A policy that wants to know which factor its volumes were filled under."""

    def factor_in_force(self, factor: float) -> None:
        """This factor, 0.0 to 1.0, has applied since the last call; 1 in shadow mode. Before the host asks anew.

        With ``factor.scope=topics`` it has applied to the clients of the affected topics alone.
        It need not be the smallest that the policy has answered: small changes are left out,
        ``pause.resume.free-share`` may hold a PAUSE, and ``fallback.action`` may apply. On its way down a limit
        follows it for some seconds.
        """


@runtime_checkable
class DataSourceTask(Protocol):
    """Periodic work, such as publishing this broker's volumes (proposal 035, DataSourceTask)."""

    period: timedelta

    def run(self) -> None:
        """Do the work once. It may block, and should end within ``period``, after which it is called again."""


class Role(StrEnum):
    """What a plugin can be, in the order in which a host builds its plugins; as text, in an operator's words."""

    group: str  # the entry point group in which packages offer plugins of this role
    broker_property: str  # names the plugins of this role; without ``client.quota.callback.``
    protocol: type  # the methods that such a plugin must have

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
