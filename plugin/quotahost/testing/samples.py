"""These samples are values that a broker may pass to a plugin: clients, client quotas and volumes of all kinds.

The checks use all of these samples; a plugin's own tests may use them, too.
"""

from typing import Final

from quotahost.model import DEFAULT, QUOTA_TYPES, Client, ClientQuotaChange, Limit, LimitType, QuotaEntity, Volume

# Kafka accepts any client-id of up to 32,767 bytes; a principal may be a distinguished name.
_ANY_CHARACTERS: Final = 'a:b\t"ü\n *?=,#\\\u2028🦉\0'

CLIENTS: Final = (
    Client("alice", "app"),
    Client("alice", "app-2"),
    Client("bob", "app"),
    Client("ANONYMOUS", ""),
    Client("", ""),
    Client("", "app"),
    Client("alice", ""),
    Client("CN=b,OU=c d,O=ä", "a:b"),
    Client("a:b", "c"),
    Client("a", "b:c"),
    Client(_ANY_CHARACTERS, _ANY_CHARACTERS),
    # A client may have the name that Kafka prints for its default entity.
    Client("<default>", "<default>"),
    Client("alice", "x" * 32_767),
)
"""Common and uncommon names, empty ones, and pairs that a careless separator would mix up."""

_NAMES: Final = ("alice", _ANY_CHARACTERS, DEFAULT, None)
_ENTITIES: Final = tuple(
    QuotaEntity(user, client_id)
    for user in _NAMES
    for client_id in ("app", DEFAULT, None)
    if user is not None or client_id is not None
)

CLIENT_QUOTAS: Final = tuple(
    ClientQuotaChange(quota_type, entity, rate)
    for rate in (1_000_000.0, 2_000_000.0, 0.5, None)
    for quota_type in QUOTA_TYPES
    for entity in _ENTITIES
)
"""Every kind of client quota set, changed twice and removed again."""

_SOFT, _HARD = (Limit(LimitType.MIN_FREE_PERCENTAGE, level) for level in (20, 5))

VOLUMES: Final = tuple(
    Volume("1", "/data", capacity, int(capacity * share), soft, hard)
    for soft, hard in ((None, None), (_SOFT, None), (None, _HARD), (_SOFT, _HARD))
    # The largest capacity is Java's largest long, because Kafka reports sizes as longs.
    for capacity in (1, 10**9, 10**12, 2**63 - 1)
    for share in (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0, 1.01)
)
"""Volumes of several sizes, with and without limits of their own, each from empty to fuller than its capacity."""
