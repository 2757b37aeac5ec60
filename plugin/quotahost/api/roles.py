"""These Protocols define the four roles of a plugin, with required and optional methods; ``Role`` lists the roles.

A plugin need not inherit from a Protocol; it only needs the methods. quotahost finds, builds and checks plugins by
:class:`Role` (:mod:`quotahost.broker.discovery`).
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Protocol, runtime_checkable

from quotahost.model import Client, ClusterVolumes, Factor, Limit, Quota, QuotaType, Volume


@runtime_checkable
class QuotaSupplier(Protocol):
    """Returns a client's quota, before any factor (proposal 035, QuotaSupplier).

    A supplier may also have the methods ``tick``, ``distinct_client_ids``, ``client_quota_changed`` and
    ``cluster_changed`` (contract 10, 11, 15).
    """

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The quota of this client; None if this supplier has no quota for the client.

        The host asks once for each quota type when it first sees a client, and again after ``answers_changed``. After
        None, the host asks the next supplier of the property ``supplier``; if all answers are None, the client is
        unlimited. With ``supplier.combine=most-constraining`` the host asks all, and the smallest rate applies.
        """


@runtime_checkable
class QuotaFactorSource(Protocol):
    """Reports how full the volumes are, or which factor applies (proposal 035, QuotaFactorSource).

    A factor source may be for single ``quota_types`` (contract 14).
    """

    def read(self) -> ClusterVolumes | Factor | float | None:
        """The volumes, from which the policy computes the factor; or the factor, if the source knows no volumes.

        The host calls this method every ``factor.interval``. A Factor can give the cause why it is below 1; a plain
        number from 0 to 1 is a factor without a cause. None means that the source knows nothing. Then the host
        applies ``fallback.action`` after ``startup.grace`` or, if the source has known something, after ``validity``.
        """


@runtime_checkable
class QuotaPolicy(Protocol):
    """Decides which factor follows from how full a volume is (proposal 035, QuotaPolicy).

    A policy may also be LimitAware and a FactorListener (contract 12, 13).
    """

    def quota_factor(self, volume: Volume) -> float:
        """The factor for a volume, from 0.0 (hard limit reached) to 1.0 (at or below the soft limit).

        The smallest factor of all volumes applies. The host asks for every volume when the factor source's volumes have
        changed; if the policy has a true attribute ``depends_on_time``, the host asks after every ``read``.
        """


@runtime_checkable
class LimitAware(Protocol):
    """A policy that returns its limits (proposal 035, QuotaPolicy: getSoftLimit and its three siblings).

    The host uses the limits in the metrics and to hold a PAUSE; otherwise only ``quota_factor`` decides the factor
    (contract 12). Each method takes the volume, because a volume may have its own limits (proposal 035, snapshot
    note 2).
    """

    def soft_limit(self, volume: Volume) -> Limit | None:
        """The level from which on the policy may lower the factor of this volume; None if there is no such level.

        The limit's type tells whether the level is fixed (bytes consumed or free) or relative (percent free).
        """

    def hard_limit(self, volume: Volume) -> Limit | None:
        """The level at which the factor of this volume is 0; None if there is no such level.

        A volume must not reach the hard limit before the soft limit. If there is only a soft limit, the metrics show
        the volume's capacity as the hard limit.
        """

    def breaches_soft_limit(self, volume: Volume) -> bool:
        """True if the volume breaches the soft limit. If False, the volume's factor is 1."""

    def breaches_hard_limit(self, volume: Volume) -> bool:
        """True if the volume breaches the hard limit; then it also breaches the soft limit, and its factor is 0."""


@runtime_checkable
class FactorListener(Protocol):
    """A policy that gets the factor in force, for example to learn how its volumes fill under the factor."""

    def factor_in_force(self, factor: float) -> None:
        """Note a factor, 0.0 to 1.0, that has applied since the last call. The host calls this before ``quota_factor``.

        In shadow mode the factor is 1. With ``factor.scope=topics`` the factor applied only to the writers of the
        affected topics. The factor may differ from the smallest answer of the policy: the host skips small changes,
        ``pause.resume.free-share`` may hold a PAUSE, and ``fallback.action`` may apply. The limits take some seconds
        to follow a lower factor.
        """


@runtime_checkable
class DataSourceTask(Protocol):
    """Does periodic work, such as publishing this broker's volumes (proposal 035, DataSourceTask)."""

    period: timedelta  # the time from the end of one run to the start of the next run

    def run(self) -> None:
        """Do the work once. This method may block. The host calls it again one ``period`` after it has returned."""


class Role(StrEnum):
    """The roles of plugins, in the order in which the host builds the plugins. The value is the role's display name."""

    group: str  # the entry point group in which packages offer plugins of this role
    broker_property: str  # the property that names the plugins of this role, without ``client.quota.callback.``
    protocol: type  # the Protocol with the methods that such a plugin must have

    SUPPLIER = "supplier", "quotahost.suppliers", "supplier", QuotaSupplier
    FACTOR_SOURCE = "factor source", "quotahost.factor_sources", "factor.source", QuotaFactorSource
    POLICY = "policy", "quotahost.policies", "policy", QuotaPolicy
    TASK = "task", "quotahost.tasks", "tasks", DataSourceTask

    def __new__(cls, words: str, group: str, broker_property: str, protocol: type) -> Role:
        """Create a member: a str with three attributes."""
        role = str.__new__(cls, words)
        role._value_ = words
        role.group, role.broker_property, role.protocol = group, broker_property, protocol
        return role
