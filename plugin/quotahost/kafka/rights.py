"""The questions of ``doctor --against``: rights to quotahost's topics, and how they are kept; ``doctor/topics`` judges.

A broker says of every topic which operations the client that asks may do (KIP-430). So a client without credentials
learns what everybody may do, whatever authorizer the cluster has. A client that may look at ACLs also learns whom they
let in. Nothing is written: whether a client may create a topic is asked by a request that is only validated.
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
_SILENT: Final = "it lets this client connect, and then doesn't answer in time"
#: What changes a topic or its records; whoever may do one of these can lie to the brokers.
CHANGES: Final = frozenset({"Write", "Create", "Delete", "Alter", "AlterConfigs", "All", "Any"})
_ASKED: Final = ("cleanup.policy", "min.insync.replicas", "max.message.bytes", "message.timestamp.type")

#: By principal, ``User:*`` for everybody, and operation, the resources of the ACLs that allow it: "prefixed __quota".
Holders: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a topic is kept."""

    replicas: int  # of the partition that has fewest
    config: Mapping[str, str] | None  # the properties that matter; None if the client may not see them


@dataclass(frozen=True, slots=True)
class Rights:
    """What a cluster says of some topics."""

    #: By topic that exists or is denied, what the asking client may do, as ACLs name it.
    own: Mapping[str, frozenset[str]]
    cluster: frozenset[str]  # what it may do on the cluster itself; without an authorizer that is everything
    acls: Mapping[str, Holders] | None  # by topic, whom ACLs allow something; None if it may not look at ACLs
    missing: Mapping[str, bool] = field(default_factory=dict)  # topics that don't exist; whether it may create them
    group: bool = True  # whether it may ask for the coordinator of the plugins' groups; true if that wasn't asked
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # by topic, as far as the client may see it
    brokers: int = 0  # how many are alive; 0 if that wasn't asked


def ask(admin: AdminClient, topics: Collection[str], with_group: bool = False) -> Rights:
    """Ask the cluster about these topics, within about a minute.

    ``with_group`` asks for the plugins' groups, too; for that Kafka makes its topic of offsets, if it is missing.
    Raises NoAnswer.
    """
    try:
        return _asked(admin, topics, with_group)
    except KafkaException as failure:
        error = failure.args[0]
        raise NoAnswer(_SILENT if error.code() == KafkaError._TIMED_OUT else error.str()) from None


def _asked(admin: AdminClient, topics: Collection[str], with_group: bool) -> Rights:
    described = answer(admin.describe_cluster(include_authorized_operations=True, request_timeout=_WAIT), _WAIT)
    cluster = _named(described.authorized_operations)
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
    # librdkafka gives an empty list instead of the error to a client that may not look.
    acls = _acls(admin, topics) if "Describe" in cluster else None
    made = admin.create_topics(missing, request_timeout=_WAIT, validate_only=True) if missing else {}
    codes = {name: _code(future) for name, future in made.items()}
    if KafkaError._TIMED_OUT in codes.values():  # while no controller answers, for example
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    # Another reason, such as a PAUSE, says nothing of the client's rights.
    creatable = {name: code not in DENIED for name, code in codes.items()}
    group = f"{GROUPS}doctor"  # it has no members; the plugins' groups have none, either
    groups = admin.describe_consumer_groups([group], request_timeout=_WAIT) if with_group else {}
    # Nor does a time-out here: Kafka judges the right first, and in a small cluster there may be no coordinator.
    may_group = all(_code(future) != KafkaError.GROUP_AUTHORIZATION_FAILED for future in groups.values())
    return Rights(own, cluster, acls, creatable, may_group, shapes, len(described.nodes))


def _code(future: Any) -> int:
    """The code of the error in which a request has ended, 0 without one."""
    try:
        answer(future, _WAIT)
    except KafkaException as failure:
        code: int = failure.args[0].code()
        return code
    return 0


def _shape(admin: AdminClient, topic: Any, may_see: bool) -> Shape:
    """By what ``describe_topics`` said; ``may_see``: the client has DescribeConfigs."""
    config: dict[str, str] | None = None
    if may_see:
        with suppress(KafkaException):
            entries = described(admin, ResourceType.TOPIC, topic.name, _WAIT)
            config = {name: str(entries[name].value) for name in _ASKED if name in entries}
    return Shape(min((len(partition.replicas) for partition in topic.partitions), default=0), config)


def _acls(admin: AdminClient, topics: Collection[str]) -> Mapping[str, Holders]:
    """Whom ACLs allow something; nobody where there is no authorizer with ACLs."""
    allowed: dict[str, dict[str, dict[str, list[str]]]] = {}
    anything: Any = None  # the stubs don't allow None
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
