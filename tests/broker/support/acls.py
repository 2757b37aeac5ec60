"""ACLs of topics by Kafka's Admin API, which the fence passes on to the authorizer behind it."""

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)


def acl(
    user: str, topic: str, operation: AclOperation, pattern: ResourcePatternType = ResourcePatternType.LITERAL
) -> AclBinding:
    """Allows a user, given by the principal's name, an operation on a topic, or on all with this prefix."""
    return AclBinding(ResourceType.TOPIC, topic, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def give(admin: AdminClient, *rights: AclBinding) -> None:
    """Creates these ACLs."""
    for given in admin.create_acls(list(rights)).values():
        given.result(120)
