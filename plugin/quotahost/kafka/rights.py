"""The questions of ``doctor --against``: rights to quotahost's topics, and how they are kept; ``doctor/topics`` judges.

A broker says of every topic which operations the client that asks may do (KIP-430). So a client without credentials
learns what everybody may do, whatever authorizer the cluster has. A client that may look at ACLs also learns whom they
let in. Nothing is written: whether a client may create a topic is asked by a request that is only validated.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
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

from quotahost.kafka.admin import Shape, shape
from quotahost.kafka.client import DENIED, NoAnswer, answer
from quotahost.records.topics import GROUPS

_WAIT: Final = 10.0  # seconds
_SILENT: Final = "it lets this client connect, and then doesn't answer in time"
#: What changes a topic or its records; whoever may do one of these can lie to the brokers.
CHANGES: Final = frozenset({"Write", "Create", "Delete", "Alter", "AlterConfigs", "All", "Any"})


#: By principal, ``User:*`` for everybody, and operation, the resources of the ACLs that allow it: "prefixed __quota".
Holders: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]


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
        described = answer(admin.describe_cluster(include_authorized_operations=True, request_timeout=_WAIT), _WAIT)
        cluster = _named(described.authorized_operations)
        own, shapes, missing = _topics(admin, topics)
        # librdkafka gives an empty list instead of the error to a client that may not look.
        acls = _acls(admin, topics) if "Describe" in cluster else None
        may_group = not with_group or _group(admin)
        return Rights(own, cluster, acls, _creatable(admin, missing), may_group, shapes, len(described.nodes))
    except KafkaException as failure:
        # The client, too, gives up waiting: which of the two comes first is chance.
        silent = failure.args[0].code() == KafkaError._TIMED_OUT
        raise NoAnswer(_SILENT if silent else str(failure.args[0].str())) from None
    except TimeoutError:
        raise NoAnswer(_SILENT) from None


def _result(future: Any) -> tuple[Any, KafkaException | None, int]:
    """What a request has brought; or None, the error that it ended in, and the error's code, which is 0 without one."""
    try:
        return answer(future, _WAIT), None, 0
    except KafkaException as failure:
        return None, failure, failure.args[0].code()


def _topics(
    admin: AdminClient, topics: Collection[str]
) -> tuple[dict[str, frozenset[str]], dict[str, Shape], list[str]]:
    """Operations and shapes of the topics that exist, and the names of those that don't."""
    own: dict[str, frozenset[str]] = {}
    shapes: dict[str, Shape] = {}
    missing: list[str] = []
    wanted = TopicCollection(list(topics))
    asked = admin.describe_topics(wanted, include_authorized_operations=True, request_timeout=_WAIT)
    for name, future in asked.items():
        topic, failure, code = _result(future)
        if failure is None:
            own[name] = _named(topic.authorized_operations)
            shapes[name] = shape(admin, topic, "DescribeConfigs" in own[name], _WAIT)
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            own[name] = frozenset()
        elif code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            missing.append(name)
        else:
            raise failure
    return own, shapes, missing


def _creatable(admin: AdminClient, missing: Collection[str]) -> dict[str, bool]:
    if not missing:
        return {}
    asked = admin.create_topics([NewTopic(name, 1, 1) for name in missing], request_timeout=_WAIT, validate_only=True)
    # Another reason, such as a PAUSE, says nothing of the client's rights.
    return {name: _result(future)[2] not in DENIED for name, future in asked.items()}


def _group(admin: AdminClient) -> bool:
    name = f"{GROUPS}doctor"  # it has no members; the plugins' groups have none, either
    future = admin.describe_consumer_groups([name], request_timeout=_WAIT)[name]
    return _result(future)[2] != KafkaError.GROUP_AUTHORIZATION_FAILED


def _acls(admin: AdminClient, topics: Collection[str]) -> Mapping[str, Holders]:
    """Whom ACLs allow something; nobody where there is no authorizer with ACLs."""
    allowed: dict[str, dict[str, dict[str, list[str]]]] = {}
    anything: Any = None  # the stubs don't allow None
    for topic in topics:
        wanted = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.MATCH, anything, anything, AclOperation.ANY,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        try:
            bindings = answer(admin.describe_acls(wanted, request_timeout=_WAIT), _WAIT)
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.SECURITY_DISABLED:
                return {}
            raise
        for acl in bindings:
            holds = allowed.setdefault(topic, {}).setdefault(acl.principal, {})
            resource = f"{acl.resource_pattern_type.name.lower()} {acl.name}"
            holds.setdefault(_in_acls(acl.operation.name), []).append(resource)
    return allowed


def _named(operations: Iterable[Any] | None) -> frozenset[str]:
    return frozenset(_in_acls(operation.name) for operation in operations or ())


def _in_acls(name: str) -> str:
    """``DESCRIBE_CONFIGS`` as ``DescribeConfigs``."""
    return "".join(part.title() for part in name.split("_"))
