"""Compacted topics: made if absent, and looked at if not."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from quotahost.errors import QuotahostError
from quotahost.records.topics import COMPACTED

log = logging.getLogger("quotahost.kafka")

_WAIT: Final = 5.0  # seconds
_REPLICAS: Final = 3
# A snapshot that one broker keeps is better than none.
_CONFIG: Final = COMPACTED | {"min.insync.replicas": "1"}


class Gathering(QuotahostError):
    """The cluster has just started."""


def ensure_compacted(
    config: Mapping[str, Any], topic: str, brokers: int, patient: bool, gathering: bool
) -> None:
    """Make the topic if it isn't there; one partition, since order by key is all that readers need.

    Args:
        config: librdkafka's.
        topic: its name.
        brokers: how many are registered; as many replicas, up to three.
        gathering: whether more may register soon; the topic is not made then while they are fewer than three.
        patient: whether to wait for brokers that are down, rather than to make do with those alive.

    Raises:
        KafkaException: it can't be made or looked up (yet).
        Gathering: there may soon be brokers for more replicas.
    """
    admin = AdminClient(dict(config))
    found = admin.list_topics(topic, timeout=_WAIT)
    error = found.topics[topic].error
    if error is None:
        _look(admin, topic)
        return
    if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(error)
    if gathering and brokers < _REPLICAS:
        raise Gathering(f"{topic} is not made yet: more brokers may register soon")
    replicas = min(_REPLICAS, brokers if patient else len(found.brokers)) or 1
    try:
        new = NewTopic(topic, 1, replicas, config=_CONFIG)
        admin.create_topics([new], request_timeout=_WAIT)[topic].result(_WAIT)
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    else:
        log.info("made the compacted topic %s with %d replicas", topic, replicas)


def _look(admin: AdminClient, topic: str) -> None:
    """A topic that deletes by age forgets brokers that have nothing new to say."""
    try:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        told = admin.describe_configs([resource], request_timeout=_WAIT)[resource].result(_WAIT)
        policy = told["cleanup.policy"].value or ""
    except KafkaException as problem:
        log.debug("cleanup.policy of %s can't be read: %s", topic, problem)
        return
    if "compact" not in policy:
        log.warning("topic %s has cleanup.policy=%s; set compact, or it grows and forgets", topic, policy)
