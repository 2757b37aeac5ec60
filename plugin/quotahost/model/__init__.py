"""Frozen value types that every other module speaks in: clients, quotas, scopes, factors, volumes, clusters.

Public. Plugin authors import them from here, not from the modules below. Knows nothing else of quotahost.
"""

from quotahost.model.cluster import ClientUsage, Cluster, LogDir
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
from quotahost.model.volumes import ClusterVolumes, Factor, Limit, LimitType, State, Volume

__all__ = [
    "DEFAULT",
    "MAX_RATE",
    "QUOTA_TYPES",
    "UNLIMITED",
    "Client",
    "ClientQuotaChange",
    "ClientUsage",
    "Cluster",
    "ClusterVolumes",
    "Default",
    "Factor",
    "Limit",
    "LimitType",
    "LogDir",
    "Quota",
    "QuotaEntity",
    "QuotaType",
    "Scope",
    "ScopeKind",
    "State",
    "Volume",
]
