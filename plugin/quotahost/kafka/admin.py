"""confluent-kafka's Admin client and the values that its requests take: the one place that imports them.

All these names are in confluent-kafka's documentation of ``confluent_kafka.admin``. But the package doesn't mark them
as exported, so a type checker would have them taken from its private modules, whose names may change.
"""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

__all__ = [
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AdminClient",
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "NewPartitions",
    "NewTopic",
    "ResourcePatternType",
    "ResourceType",
]
