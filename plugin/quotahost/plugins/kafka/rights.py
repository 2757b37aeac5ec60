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
        everybody: the ACLs that give everybody a right to a topic: topic, pattern and operation. Empty if the client
            may not look at ACLs.
        acls_seen: whether the client may look at ACLs.
        unguarded: whether the cluster has no authorizer with ACLs.
    """

    own: Mapping[str, frozenset[str]]
    everybody: tuple[tuple[str, str, str], ...]
    acls_seen: bool
    unguarded: bool


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
        own = _own(admin, topics)
        everybody, refusal = _everybody(admin, topics)
    except KafkaException as failure:
        raise NoAnswer(str(failure.args[0].str())) from None
    unguarded = refusal == KafkaError.SECURITY_DISABLED
    return Rights(own, everybody, refusal is None, unguarded)


def _own(admin: AdminClient, topics: Collection[str]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    asked = admin.describe_topics(
        TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=_WAIT
    )
    for name, answer in asked.items():
        try:
            operations: Any = answer.result(_WAIT).authorized_operations
            found[name] = frozenset(_in_acls(each.name) for each in operations or ())
        except KafkaException as failure:
            code = failure.args[0].code()
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                found[name] = frozenset()
            elif code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def _everybody(admin: AdminClient, topics: Collection[str]) -> tuple[tuple[tuple[str, str, str], ...], int | None]:
    """ACLs for everybody, and the code of the error if the client may not see them."""
    found = []
    anything: Any = None  # the stubs don't allow None
    for topic in topics:
        wanted = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.MATCH, "User:*", anything, AclOperation.ANY,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        try:
            acls: Any = admin.describe_acls(wanted, request_timeout=_WAIT).result(_WAIT)
        except KafkaException as failure:
            code: int = failure.args[0].code()
            if code not in (KafkaError.SECURITY_DISABLED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
                raise
            return (), code
        found += [
            (topic, f"{each.resource_pattern_type.name.lower()} {each.name}", _in_acls(each.operation.name))
            for each in acls
        ]
    return tuple(found), None


def _in_acls(name: str) -> str:
    """``DESCRIBE_CONFIGS`` as ``DescribeConfigs``."""
    return "".join(part.title() for part in name.split("_"))
