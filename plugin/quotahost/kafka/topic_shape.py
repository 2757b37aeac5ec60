"""A topic's replicas and the properties that matter for quotahost's records, as a running cluster has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

_ASKED: Final = ("cleanup.policy", "min.insync.replicas", "max.message.bytes", "message.timestamp.type")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a topic is kept.

    Attributes:
        replicas: of the partition that has fewest.
        config: the properties that matter; None if the client may not see them.
    """

    replicas: int
    config: Mapping[str, str] | None


def shape(admin: AdminClient, topic: Any, may_see: bool, wait: float) -> Shape:
    """The shape of a topic.

    Args:
        admin: connected.
        topic: what ``describe_topics`` said of it.
        may_see: whether the client has DescribeConfigs there.
        wait: seconds to wait for its configuration.
    """
    replicas = min((len(each.replicas) for each in topic.partitions), default=0)
    return Shape(replicas, _config(admin, topic.name, wait) if may_see else None)


def _config(admin: AdminClient, topic: str, wait: float) -> dict[str, str] | None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        entries = admin.describe_configs([resource], request_timeout=wait)[resource].result(wait)
    except (KafkaException, TimeoutError):
        return None
    return {name: str(entries[name].value) for name in _ASKED if name in entries}
