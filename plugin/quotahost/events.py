"""The fields of the inbox's events as values (org.quotahost.ClientQuotas, Inbox, Reconfiguration)."""

from __future__ import annotations

from quotahost.model import DEFAULT, ClientQuotaChange, Cluster, Default, QuotaEntity, QuotaType


def client_quota(fields: tuple[str, ...]) -> ClientQuotaChange:
    """Type, kind and name of the user, kind and name of the client-id, rate or "" for removed."""
    quota_type, user_kind, user, client_kind, client_id, rate = fields
    entity = QuotaEntity(_name(user_kind, user), _name(client_kind, client_id))
    return ClientQuotaChange(QuotaType(quota_type), entity, float(rate) if rate else None)


def _name(kind: str, name: str) -> str | Default | None:
    if kind == "default":
        return DEFAULT
    return name if kind == "name" else None


def cluster(fields: tuple[str, ...]) -> Cluster:
    """The cluster's id, then the ids of its brokers."""
    cluster_id, *brokers = fields
    return Cluster(cluster_id, frozenset(int(broker) for broker in brokers))


def properties(fields: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The ticket, then names and values of all properties in turn."""
    ticket, *flat = fields
    return ticket, dict(zip(flat[::2], flat[1::2], strict=True))
