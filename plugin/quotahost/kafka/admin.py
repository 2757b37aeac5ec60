"""Kafka's Admin API for brokers: creates missing topics, warns if one deletes by age, changes dynamic properties.

The pipeline creates its topics alike (``config_of`` in ``quotahost.records.topics``), through Kafka's Java client.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)  # fmt: skip

from quotahost.base.errors import QuotahostError
from quotahost.kafka.client import DENIED, NoAnswer, answer, no_right
from quotahost.records.topics import config_of

log = logging.getLogger("quotahost.kafka")
_warn_once: Final = cache(log.warning)  # a publisher looks its topics up whenever it connects again

_WAIT: Final = 5.0  # seconds
_REPLICAS: Final = 3


class NotMade(KafkaException):
    """A topic is absent and can't be created."""


def ensure_compacted(
    admin: AdminClient, topic: str, registered: Callable[[], tuple[int, bool]] = lambda: (0, False)
) -> None:
    """Create the topic if it is absent, with one partition: readers need only the order of one key's records.

    ``registered`` returns the number of registered brokers, down or not, and whether more may register soon. The topic
    gets one replica for each, but at most three; 0 means the live brokers. Raises QuotahostError while more may
    register and the topic would get fewer; NotMade if it can't be created; KafkaException if it can't be looked up.
    """
    metadata = admin.list_topics(topic, timeout=_WAIT)
    error = metadata.topics[topic].error
    if error is None:
        _check_policy(admin, topic)
        return
    if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(error)
    # Only now, because a topic that exists must not wait for the answer.
    brokers, gathering = registered()
    # Nobody adds replicas to the topic later, so a topic that is created too early would keep too few.
    if gathering and brokers < _REPLICAS:
        raise QuotahostError(f"{topic} is not created yet: more brokers may register soon")
    replicas = min(_REPLICAS, brokers or len(metadata.brokers))
    try:
        new = NewTopic(topic, 1, replicas, config=config_of(topic))
        answer(admin.create_topics([new], request_timeout=_WAIT)[topic], _WAIT)
    except KafkaException as failure:
        # All brokers of a new cluster try at the same time, and another broker may be faster.
        if (error := failure.args[0]).code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise NotMade(KafkaError(error.code(), f"topic {topic} can't be created: {error.str()}")) from None
    else:
        log.info("created the compacted topic %s with %d replicas", topic, replicas)


def _check_policy(admin: AdminClient, topic: str) -> None:
    """Warn if a topic deletes by age: it would lose the records of brokers that have nothing new to publish."""
    with suppress(KafkaException):  # the client may lack DescribeConfigs
        policy = described(admin, ResourceType.TOPIC, topic, _WAIT)["cleanup.policy"].value or ""
        if "compact" not in policy:
            text = "topic %s has cleanup.policy=%s: set compact, or the topic grows and loses records of idle brokers"
            _warn_once(text, topic, policy)


def described(admin: AdminClient, kind: ResourceType, name: str, wait: float) -> dict[str, Any]:
    """A topic's or broker's configuration, by property, within ``wait`` s. Raises KafkaException."""
    resource = ConfigResource(kind, name)
    entries: dict[str, Any] = answer(admin.describe_configs([resource], request_timeout=wait)[resource], wait)
    return entries


# ---- a broker's dynamic properties ----

_CONFIG_WAIT: Final = 10.0  # seconds
_STORED: Final = {ConfigSource.DYNAMIC_BROKER_CONFIG.value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value}


@dataclass(frozen=True, slots=True)
class Listed:
    """The value of a property that is a list."""

    entries: tuple[str, ...] = ()  # from any source
    #: Whether server.properties or the default for all brokers sets it: a value for this broker would hide that one.
    elsewhere: bool = False


class BrokerConfig:
    """The dynamic properties of one broker. Every call waits for the cluster, 10 s at most, and may raise NoAnswer.

    Lists are changed with Kafka's operations APPEND and SUBTRACT (KIP-339), so no entry is lost if another client
    changes the same list at the same moment.
    """

    def __init__(self, admin: AdminClient, broker: int, config: Mapping[str, Any]) -> None:
        """``broker`` is the broker's id, ``config`` is the client's configuration."""
        self._admin, self._broker, self._config = admin, str(broker), config

    def properties(self) -> dict[str, str | None]:
        """All values; Kafka hides those of passwords and of properties that it doesn't know, which are None here.

        Needs DescribeConfigs.
        """
        return {name: entry.value for name, entry in self._entries().items()}

    def stored(self) -> dict[str, str | None]:
        """The properties that the cluster stores, for this broker or for all; they override server.properties."""
        return {name: entry.value for name, entry in self._entries().items() if int(entry.source) in _STORED}

    def _entries(self) -> dict[str, Any]:
        with self._answered("DescribeConfigs"):
            return described(self._admin, ResourceType.BROKER, self._broker, _CONFIG_WAIT)

    def listed(self, name: str) -> Listed | None:
        """The value of a list; None if this Kafka doesn't know the property. Needs DescribeConfigs."""
        entry = self._entries().get(name)
        if entry is None:
            return None
        entries = tuple(part for part in (entry.value or "").split(",") if part)
        of_this_broker = {ConfigSource.DYNAMIC_BROKER_CONFIG.value, ConfigSource.DEFAULT_CONFIG.value}
        return Listed(entries, bool(entries) and int(entry.source) not in of_this_broker)

    def change(
        self, append: Mapping[str, Iterable[str]] | None = None, subtract: Mapping[str, Iterable[str]] | None = None,
        put: Mapping[str, str | None] | None = None, *, validate_only: bool = False,
    ) -> None:  # fmt: skip
        """Change all properties or none, or only validate; None in ``put`` removes a property. Needs AlterConfigs."""
        how = AlterConfigOpType
        changes = [(name, ",".join(entries), how.APPEND) for name, entries in (append or {}).items()]
        changes += [(name, ",".join(entries), how.SUBTRACT) for name, entries in (subtract or {}).items()]
        changes += [(n, value or "", how.DELETE if value is None else how.SET) for n, value in (put or {}).items()]
        changed = [ConfigEntry(name, value, incremental_operation=operation) for name, value, operation in changes]
        resource = ConfigResource(ResourceType.BROKER, self._broker, incremental_configs=changed)
        with self._answered("AlterConfigs"):
            options = {"validate_only": validate_only, "request_timeout": _CONFIG_WAIT}
            answer(self._admin.incremental_alter_configs([resource], **options)[resource], _CONFIG_WAIT)

    @contextmanager
    def _answered(self, right: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as failure:
            refused = (error := failure.args[0]).code() in DENIED
            text = "; ".join(no_right(right, "--cluster", self._config)) if refused else error.str()
            raise NoAnswer(text, refused=refused) from None
