"""For tests of cluster-wide quotas: their records."""

from typing import Any, TypeAlias

from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.records.quotas import ClusterQuota, Entity, encode, key_of

Set: TypeAlias = tuple[Entity, ClusterQuota]


def quota(
    user: str | None = None, client_id: str | None = None, produce: float | None = None, fetch: float | None = None
) -> Set:
    return Entity(user, client_id), ClusterQuota(produce, fetch)


def follower(reader: Any) -> Any:
    """The stand-in for what follows the reader's topic (``tests.fakes.kafka.FakeThread``)."""
    return reader._follower


def set_quotas(reader: ClusterQuotas, *quotas: Set) -> None:
    """All that the topic has, as it is read from its beginning."""
    follower(reader).begins()
    for entity, each in quotas:
        follower(reader).take(key_of(entity), encode(each), False)
    reader.caught_up()
    follower(reader).has_read = True


def change(reader: ClusterQuotas, changed: Set) -> None:
    """One entity's record is written."""
    follower(reader).take(key_of(changed[0]), encode(changed[1]), True)


def remove(reader: ClusterQuotas, user: str | None = None, client_id: str | None = None) -> None:
    """The entity's quota is removed."""
    follower(reader).take(key_of(Entity(user, client_id)), None, True)
