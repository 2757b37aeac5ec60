"""Helpers for tests of cluster-wide quotas: they pass records to a reader of the quotas' topic."""

from typing import Any, TypeAlias

from quotahost.broker.plugins.cluster_quota.quotas import ClusterQuotas
from quotahost.records.quotas import ClusterQuota, Entity, encode, key_of

Set: TypeAlias = tuple[Entity, ClusterQuota]


def quota(
    user: str | None = None, client_id: str | None = None, produce: float | None = None, fetch: float | None = None
) -> Set:
    return Entity(user, client_id), ClusterQuota(produce, fetch)


def follower(reader: Any) -> Any:
    """The reader's follower, which is a ``tests.fakes.kafka.FakeThread``."""
    return reader._follower


def set_quotas(reader: ClusterQuotas, *quotas: Set) -> None:
    """Pass the topic's whole content, which the follower reads from the beginning."""
    follower(reader).begins()
    for entity, each in quotas:
        follower(reader).take(key_of(entity), encode(each), False)
    reader.caught_up()
    follower(reader).has_read = True


def change(reader: ClusterQuotas, changed: Set) -> None:
    """Pass a new record of one entity."""
    follower(reader).take(key_of(changed[0]), encode(changed[1]), True)


def remove(reader: ClusterQuotas, user: str | None = None, client_id: str | None = None) -> None:
    """Pass a new tombstone of the entity."""
    follower(reader).take(key_of(Entity(user, client_id)), None, True)
