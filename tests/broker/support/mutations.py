"""Clients whose partition mutations are limited by Kafka's client quotas; buckets hold ten seconds of a rate."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from confluent_kafka.admin import AdminClient

from harness.clients.raw import RawClient
from harness.kafka.admin import set_quota
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import EnforcedQuota, enforced_quotas
from harness.system.waiting import eventually

KEY: Final = "controller_mutation_rate"
BURST_S: Final = 10  # controller.quota.window.num
ONE_TOKEN: Final = 1 / BURST_S  # the rate whose bucket holds one token


def buckets(node: KafkaNode, client: RawClient, rate: float, **tags: str) -> list[EnforcedQuota]:
    """The buckets of this rate, once the client has one; a topic that doesn't exist is deleted for nothing."""
    client.mutate("delete", {"none": 0})
    return [each for each in enforced_quotas(node, "CONTROLLER_MUTATION", **tags) if each.bound == rate]


def limited(node: KafkaNode, client_id: str, rate: float = ONE_TOKEN) -> RawClient:
    """A connection of a client whose quota is in force, and whose bucket is full."""
    set_quota(node, {KEY: rate}, client_id=client_id)
    client = RawClient(node, client_id)
    eventually(lambda: buckets(node, client, rate, client_id=client_id))
    return client


def partitions(node: KafkaNode, topics: Collection[str]) -> dict[str, int]:
    """The number of partitions of those of these topics that there are."""
    known = AdminClient(node.client_config(client_id="harness")).list_topics(timeout=30).topics
    return {name: len(known[name].partitions) for name in topics if name in known}
