"""Writes cluster-wide quotas for tests of brokers, without ``quotahost quotas``."""

from collections.abc import Mapping
from typing import Any, Final

from quotahost.kafka.commands import CompactedTopic
from quotahost.records.quotas import ClusterQuota, Entity, encode, key_of

QUOTAS: Final = "__quotahost_quotas"


def set_cluster_quota(
    config: Mapping[str, Any],
    user: str | None = None,
    client_id: str | None = None,
    produce: float | None = None,
    fetch: float | None = None,
) -> None:
    """Writes the record of an entity, or removes its quota if no rate is given. Takes librdkafka's properties."""
    entity = Entity(user, client_id)
    value = encode(ClusterQuota(produce, fetch)) if produce or fetch else None
    topic = CompactedTopic(config, QUOTAS, "quotahost-quotas")
    assert topic.write({key_of(entity): value}) == {}
