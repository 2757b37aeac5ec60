"""Plugins and quotahost exchange these values: clients, quotas, limits, volumes, factors, brokers. Public.

All values are immutable and validate themselves when they are created, so a wrong value fails in the code that creates
it. Import from this package; its modules are private.
"""

from quotahost.model.limits import Limit, LimitType
from quotahost.model.quotas import (
    DEFAULT,
    MAX_RATE,
    QUOTA_TYPES,
    UNLIMITED,
    Client,
    ClientQuotaChange,
    Default,
    Quota,
    QuotaEntity,
    QuotaType,
    Scope,
    ScopeKind,
)
from quotahost.model.use import ClientUse, Cluster, LimitedBy, Load, LogDir, Look, VolumeUse
from quotahost.model.volumes import ClusterVolumes, Factor, State, Volume

__all__ = [
    "DEFAULT", "MAX_RATE", "QUOTA_TYPES", "UNLIMITED", "Client", "ClientQuotaChange", "ClientUse",
    "Cluster", "ClusterVolumes", "Default", "Factor", "Limit", "LimitType", "LimitedBy", "Load", "LogDir", "Look",
    "Quota", "QuotaEntity", "QuotaType", "Scope", "ScopeKind", "State", "Volume", "VolumeUse",
]  # fmt: skip
