"""Writes cluster-wide quotas for tests of brokers, without ``quotahost quotas``."""

from collections.abc import Mapping
from typing import Any, Final

from quotahost.kafka.commands import CompactedTopic
from quotahost.records.quotas import ClusterQuota, Entity, encode, key_of

QUOTAS: Final = "__quotahost_quotas"


def set_cluster_quota(config: Mapping[str, Any], client_id: str, produce: float) -> None:
    """Writes the record of a client-id's quota. Takes librdkafka's properties."""
    topic = CompactedTopic(config, QUOTAS, "quotahost-quotas")
    assert topic.write({key_of(Entity(None, client_id)): encode(ClusterQuota(produce))}) == {}
