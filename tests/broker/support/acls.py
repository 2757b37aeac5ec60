"""ACLs of topics by Kafka's Admin API, which the fence passes on to the authorizer behind it."""

from typing import Any

from confluent_kafka.admin import AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient
from confluent_kafka.admin import ResourcePatternType as Pattern
from confluent_kafka.admin import ResourceType as Type


def acl(user: str, topic: str, operation: AclOperation, pattern: Pattern = Pattern.LITERAL) -> AclBinding:
    """An ACL that allows a user (a principal's name) an operation on a topic, or on all topics with this prefix."""
    return AclBinding(Type.TOPIC, topic, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def any_acl(principal: Any = None) -> AclBindingFilter:
    """A filter that finds all ACLs, or those of a principal."""
    anything: Any = None  # the stubs don't allow None
    return AclBindingFilter(
        Type.ANY, anything, Pattern.ANY, principal, anything, AclOperation.ANY, AclPermissionType.ANY
    )


def give(admin: AdminClient, *rights: AclBinding) -> None:
    """Creates these ACLs."""
    for given in admin.create_acls(list(rights)).values():
        given.result(120)
