"""The values in which plugins and quotahost speak: clients, quotas, limits, volumes, factors, brokers. Public.

All are immutable and check themselves when they are made, so that a wrong one fails where it arises. The modules below
are private.
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
from quotahost.model.use import ClientUse, Cluster, LimitedBy, LogDir, Look, VolumeUse
from quotahost.model.volumes import ClusterVolumes, Factor, State, Volume

__all__ = [
    "DEFAULT", "MAX_RATE", "QUOTA_TYPES", "UNLIMITED", "Client", "ClientQuotaChange", "ClientUse",
    "Cluster", "ClusterVolumes", "Default", "Factor", "Limit", "LimitType", "LimitedBy", "LogDir", "Look", "Quota",
    "QuotaEntity", "QuotaType", "Scope", "ScopeKind", "State", "Volume", "VolumeUse",
]  # fmt: skip
