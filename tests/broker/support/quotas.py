"""Cluster-wide quotas for tests of what brokers do with them, without ``quotahost quotas`` or by its commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.kafka.node import KafkaNode
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
    """Writes the record of an entity; without rates it removes its quota. Takes librdkafka's properties."""
    entity = Entity(user, client_id)
    value = encode(ClusterQuota(entity, produce, fetch)) if produce or fetch else None
    topic = CompactedTopic(config, QUOTAS, "quotahost-quotas")
    assert topic.write({key_of(entity): value}) == {}


def as_root(node: KafkaNode, directory: Path) -> list[str]:
    """How the commands connect as root, whose password is s3cret: options with a file of Kafka's Java client."""
    file = directory / "client.properties"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="s3cret";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
    return ["--bootstrap", node.client_config("root")["bootstrap.servers"], "--client-config", str(file)]
