"""Partitions created, added and deleted by a client that knows strict quotas (KIP-599): Kafka's own Admin client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.java.helper import helper
from harness.kafka.node import KafkaNode


@dataclass(frozen=True, slots=True)
class TopicError:
    """Why a topic was left as it was: the class of Java's exception, its message, and its throttle time in ms."""

    error: str
    message: str
    throttle_ms: int


def mutate(
    node: KafkaNode,
    client_id: str,
    kind: Literal["create", "grow", "delete"],
    topics: Mapping[str, int],
    *,
    validate_only: bool = False,
) -> dict[str, TopicError | None]:
    """One request for all topics, in the order of their names, not repeated when the quota is exceeded.

    Args:
        node: a broker.
        client_id: who asks, as ANONYMOUS, on a connection of its own.
        kind: CreateTopics, CreatePartitions or DeleteTopics, in the newest version.
        topics: how many partitions each is to have; of no account for "delete".
        validate_only: nothing is done.

    Returns:
        None by topic, or its refusal.
    """
    errors = helper(node.version).ask("mutate", node.bootstrap, client_id, kind, dict(topics), validate_only)
    return {
        name: each and TopicError(each["error"], each["message"], each["throttle"])
        for name, each in errors.items()
    }
