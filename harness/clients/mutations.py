"""Creates, grows and deletes topics with Kafka's own Admin client.

That client knows strict quotas (KIP-599): the broker returns an error for each topic that exceeds the quota.
librdkafka doesn't report these errors with their throttle time, so the helper JVM sends the requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.java.helper import helper
from harness.kafka.node import KafkaNode


@dataclass(frozen=True, slots=True)
class TopicError:
    """Why the broker did not change a topic: the Java exception's class, its message, and the throttle time in ms."""

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
    retry: bool = False,
    timeout: float = 50,
) -> dict[str, TopicError | None]:
    """Sends one request for all topics, in the order of their names.

    Args:
        node: the broker that gets the request.
        client_id: the client's name; it connects as ANONYMOUS, on a connection of its own.
        kind: sends CreateTopics, CreatePartitions or DeleteTopics, in the latest version.
        topics: the number of partitions that each topic shall have, by name; "delete" ignores the number.
        validate_only: the broker checks the request but changes nothing.
        retry: whether the client itself retries a topic that exceeds the quota, as it does by default.
        timeout: seconds for which the client may try (``default.api.timeout.ms``).

    Returns:
        The error of each topic, or None if the broker did what was asked.
    """
    options = (validate_only, retry, int(timeout * 1000))
    errors = helper(node.version).ask("mutate", node.bootstrap, client_id, kind, dict(topics), *options)
    return {
        name: each and TopicError(each["error"], each["message"], each["throttle"]) for name, each in errors.items()
    }
