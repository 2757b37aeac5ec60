"""Creates a compacted topic if it is absent, and warns if one that exists isn't compacted.

``publisher`` does so before its first record. The pipeline creates its own topics with the same configuration
(``quotahost.records.topics.COMPACTED``), through Kafka's Java client.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from quotahost.errors import QuotahostError
from quotahost.records.topics import COMPACTED

log = logging.getLogger("quotahost.kafka")

_WAIT: Final = 5.0  # seconds
_REPLICAS: Final = 3
# If two of three replicas are down, a snapshot that one broker keeps is better than none.
_CONFIG: Final = COMPACTED | {"min.insync.replicas": "1"}


class Gathering(QuotahostError):
    """The cluster has just started, and more brokers may register soon."""


def ensure_compacted(config: Mapping[str, Any], topic: str, brokers: int, patient: bool, gathering: bool) -> None:
    """Create the topic if it is absent, with one partition: readers need only the order of one key's records.

    Args:
        config: librdkafka's.
        topic: its name.
        brokers: the number of registered brokers; the topic gets as many replicas, up to three.
        patient: whether to wait for brokers that are down, rather than to make do with those alive.
        gathering: whether more brokers may register soon; if fewer than three have, the topic is not created then.

    Raises:
        KafkaException: the topic can't be created or looked up (yet).
        Gathering: there may soon be brokers for more replicas.
    """
    admin = AdminClient(dict(config))
    metadata = admin.list_topics(topic, timeout=_WAIT)
    error = metadata.topics[topic].error
    if error is None:
        _check_policy(admin, topic)
        return
    if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(error)
    # Nobody adds replicas to the topic later, so one that is created too early would keep too few.
    if gathering and brokers < _REPLICAS:
        raise Gathering(f"{topic} is not created yet: more brokers may register soon")
    replicas = min(_REPLICAS, brokers if patient else len(metadata.brokers)) or 1
    try:
        new = NewTopic(topic, 1, replicas, config=_CONFIG)
        admin.create_topics([new], request_timeout=_WAIT)[topic].result(_WAIT)
    except KafkaException as failure:
        # All brokers of a new cluster try at once, and another one was quicker.
        if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    else:
        log.info("created the compacted topic %s with %d replicas", topic, replicas)


def _check_policy(admin: AdminClient, topic: str) -> None:
    """Warn of a topic that deletes by age: it would lose the records of brokers that have nothing new to publish."""
    try:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = admin.describe_configs([resource], request_timeout=_WAIT)[resource].result(_WAIT)
        policy = entries["cleanup.policy"].value or ""
    except KafkaException as failure:
        log.debug("cleanup.policy of %s can't be read: %s", topic, failure)
        return
    if "compact" not in policy:
        log.warning(
            "topic %s has cleanup.policy=%s: set compact, or it grows and loses records of silent brokers",
            topic,
            policy,
        )
