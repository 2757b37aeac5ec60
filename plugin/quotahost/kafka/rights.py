"""Asks a cluster for ``doctor --against``: the rights to quotahost's topics, and how these topics are configured.

A broker tells for each topic which operations the asking client may do (KIP-430). So a client without credentials
learns what everybody may do, with any authorizer. A client that may describe ACLs also learns whom the ACLs allow.
Nothing is written: a validate-only request tells whether a client may create a topic. ``doctor/topics`` judges all.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from quotahost.kafka.admin import described
from quotahost.kafka.client import DENIED, NoAnswer, answer
from quotahost.records.topics import GROUPS

_WAIT: Final = 10.0  # seconds
_SILENT: Final = "the broker accepts the connection but doesn't answer in time"
#: The operations that change a topic or its records; a client with the right to one can lie to the brokers.
CHANGES: Final = frozenset({"Write", "Create", "Delete", "Alter", "AlterConfigs", "All", "Any"})
_ASKED: Final = ("cleanup.policy", "min.insync.replicas", "max.message.bytes", "message.timestamp.type")

#: The resources of ACLs, such as "prefixed __quota", by principal (``User:*`` is everybody) and allowed operation.
Holders: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Shape:
    """A topic's replicas and configuration."""

    replicas: int  # those of the partition with the fewest
    config: Mapping[str, str] | None  # the properties in _ASKED; None if the client may not see them


@dataclass(frozen=True, slots=True)
class Rights:
    """A cluster's answers about some topics, and about the client that asks."""

    #: The operations that the client may do, by topic, named as in ACLs; an empty set for a denied topic.
    own: Mapping[str, frozenset[str]]
    cluster: frozenset[str]  # the operations that it may do on the cluster; all, if there is no authorizer
    acls: Mapping[str, Holders] | None  # by topic, the holders of ACLs; None if the client may not describe ACLs
    missing: Mapping[str, bool] = field(default_factory=dict)  # absent topics, and whether the client may create each
    group: bool = True  # whether it may find the coordinator of the plugins' groups; True if that wasn't asked
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # by topic, as far as the client may see it
    brokers: int = 0  # the number of live brokers; 0 if that wasn't asked


def ask(admin: AdminClient, topics: Collection[str], with_group: bool = False) -> Rights:
    """Ask the cluster about these topics, within about a minute.

    ``with_group`` also asks about the plugins' groups; for that, Kafka creates ``__consumer_offsets`` if it is absent.
    Raises NoAnswer.
    """
    try:
        return _asked(admin, topics, with_group)
    except KafkaException as failure:
        error = failure.args[0]
        raise NoAnswer(_SILENT if error.code() == KafkaError._TIMED_OUT else error.str()) from None


def _asked(admin: AdminClient, topics: Collection[str], with_group: bool) -> Rights:
    whole = answer(admin.describe_cluster(include_authorized_operations=True, request_timeout=_WAIT), _WAIT)
    cluster = _named(whole.authorized_operations)
    own: dict[str, frozenset[str]] = {}
    shapes: dict[str, Shape] = {}
    missing: list[NewTopic] = []
    wanted = TopicCollection(list(topics))
    asked = admin.describe_topics(wanted, include_authorized_operations=True, request_timeout=_WAIT)
    for name, future in asked.items():
        code = _code(future)
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            own[name] = frozenset()
        elif code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            missing.append(NewTopic(name, 1, 1))
        else:
            topic = answer(future, _WAIT)
            own[name] = _named(topic.authorized_operations)
            shapes[name] = _shape(admin, topic, "DescribeConfigs" in own[name])
    # If a client may not describe ACLs, librdkafka returns an empty list instead of the error.
    acls = _acls(admin, topics) if "Describe" in cluster else None
    made = admin.create_topics(missing, request_timeout=_WAIT, validate_only=True) if missing else {}
    codes = {name: _code(future) for name, future in made.items()}
    if KafkaError._TIMED_OUT in codes.values():  # for example, no controller answers
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    # Any other error, for example in a PAUSE, says nothing about the client's rights.
    creatable = {name: code not in DENIED for name, code in codes.items()}
    group = f"{GROUPS}doctor"  # a group without members, like the plugins' groups
    groups = admin.describe_consumer_groups([group], request_timeout=_WAIT) if with_group else {}
    # A time-out here says nothing, either: Kafka checks the right first, and a small cluster may have no coordinator.
    may_group = all(_code(future) != KafkaError.GROUP_AUTHORIZATION_FAILED for future in groups.values())
    return Rights(own, cluster, acls, creatable, may_group, shapes, len(whole.nodes))


def _code(future: Any) -> int:
    """The code of the request's error; 0 if the request succeeded."""
    try:
        answer(future, _WAIT)
    except KafkaException as failure:
        code: int = failure.args[0].code()
        return code
    return 0


def _shape(admin: AdminClient, topic: Any, may_see: bool) -> Shape:
    """The shape of a topic of ``describe_topics``; ``may_see`` is whether the client has DescribeConfigs."""
    config: dict[str, str] | None = None
    if may_see:
        with suppress(KafkaException):
            entries = described(admin, ResourceType.TOPIC, topic.name, _WAIT)
            config = {name: str(entries[name].value) for name in _ASKED if name in entries}
    return Shape(min((len(partition.replicas) for partition in topic.partitions), default=0), config)


def _acls(admin: AdminClient, topics: Collection[str]) -> Mapping[str, Holders]:
    """The holders of ACLs, by topic; empty if there is no authorizer with ACLs."""
    allowed: dict[str, dict[str, dict[str, list[str]]]] = {}
    anything: Any = None  # None, which the type stubs don't allow
    for topic in topics:
        wanted = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.MATCH, anything, anything, AclOperation.ANY,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        future = admin.describe_acls(wanted, request_timeout=_WAIT)
        if _code(future) == KafkaError.SECURITY_DISABLED:
            return {}
        for acl in answer(future, _WAIT):
            holds = allowed.setdefault(topic, {}).setdefault(acl.principal, {})
            resource = f"{acl.resource_pattern_type.name.lower()} {acl.name}"
            holds.setdefault(_in_acls(acl.operation.name), []).append(resource)
    return allowed


def _named(operations: Iterable[Any] | None) -> frozenset[str]:
    return frozenset(_in_acls(operation.name) for operation in operations or ())


def _in_acls(name: str) -> str:
    """``DESCRIBE_CONFIGS`` as ``DescribeConfigs``."""
    return "".join(part.title() for part in name.split("_"))
