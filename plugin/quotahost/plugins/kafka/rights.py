"""Asks a running cluster who may do what with quotahost's topics; ``quotahost doctor --against`` prints the answer.

A broker says of every topic which operations the client that asks may do (KIP-430). So a client without credentials
learns what everybody may do, whatever authorizer the cluster has. A client that may look at ACLs also learns which of
them are for everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from quotahost.errors import QuotahostError

_WAIT: Final = 10.0  # seconds
_OURS: Final = {"log_level": 0, "socket.connection.setup.timeout.ms": 5000}
#: What changes a topic or its records; whoever may do one of these can lie to the brokers.
CHANGES: Final = frozenset({"Write", "Create", "Delete", "Alter", "AlterConfigs", "All", "Any"})


class NoAnswer(QuotahostError):
    """The cluster doesn't answer this client, or refuses it."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a cluster says of some topics.

    Attributes:
        own: by topic that exists, the operations that the asking client may do, in ACLs' names.
        cluster: the operations that it may do on the cluster itself. Without an authorizer that is all of them.
        everybody: the ACLs that give everybody a right to a topic: topic, pattern and operation. None if the client may
            not look at ACLs.
    """

    own: Mapping[str, frozenset[str]]
    cluster: frozenset[str]
    everybody: tuple[tuple[str, str, str], ...] | None


def ask(config: Mapping[str, str], topics: Collection[str]) -> Rights:
    """Ask the cluster.

    Args:
        config: librdkafka's, with ``bootstrap.servers``; it may contain secrets, of which nothing is shown.
        topics: the names of the topics.

    Raises:
        NoAnswer: it can't be reached by this client; the message has librdkafka's reason.
    """
    try:
        admin = AdminClient({**_OURS, **config})
        # The first question; it fails within seconds where nobody answers.
        admin.list_topics(timeout=_WAIT)
        described: Any = admin.describe_cluster(include_authorized_operations=True, request_timeout=_WAIT)
        cluster = _named(described.result(_WAIT).authorized_operations)
        # librdkafka gives an empty list instead of the error to a client that may not look.
        everybody = _everybody(admin, topics) if "Describe" in cluster else None
        return Rights(_own(admin, topics), cluster, everybody)
    except KafkaException as failure:
        raise NoAnswer(str(failure.args[0].str())) from None


def _own(admin: AdminClient, topics: Collection[str]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    asked = admin.describe_topics(
        TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=_WAIT
    )
    for name, answer in asked.items():
        try:
            found[name] = _named(answer.result(_WAIT).authorized_operations)
        except KafkaException as failure:
            code = failure.args[0].code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                found[name] = frozenset()
            elif code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def _everybody(admin: AdminClient, topics: Collection[str]) -> tuple[tuple[str, str, str], ...]:
    """The ACLs for everybody; none where there is no authorizer with ACLs."""
    found: list[tuple[str, str, str]] = []
    anything: Any = None  # the stubs don't allow None
    for topic in topics:
        wanted = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.MATCH, "User:*", anything, AclOperation.ANY,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        try:
            acls: Any = admin.describe_acls(wanted, request_timeout=_WAIT).result(_WAIT)
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.SECURITY_DISABLED:
                return ()
            raise
        for each in acls:
            found.append(
                (topic, f"{each.resource_pattern_type.name.lower()} {each.name}", _in_acls(each.operation.name))
            )
    return tuple(found)


def _named(operations: Any) -> frozenset[str]:
    return frozenset(_in_acls(each.name) for each in operations or ())


def _in_acls(name: str) -> str:
    """``DESCRIBE_CONFIGS`` as ``DescribeConfigs``."""
    return "".join(part.title() for part in name.split("_"))
