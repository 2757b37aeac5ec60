"""What a broker may hand to a plugin: clients of any name, all kinds of client quotas, volumes of any fill.

The checks ask for all of these; a test of yours may, too.
"""

from typing import Final

from quotahost.model import DEFAULT, QUOTA_TYPES, Client, ClientQuotaChange, Default, QuotaEntity, Volume

# Kafka lets a client choose any client-id of up to 32,767 bytes; a principal may be a distinguished name.
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
    # A client may choose the name by which Kafka writes its default entity.
    Client("<default>", "<default>"),
    Client("alice", "x" * 32_767),
)
"""Common and uncommon names, empty ones, and pairs that a careless separator would mix up."""

_NAMES: Final[tuple[str | Default | None, ...]] = ("alice", _ANY_CHARACTERS, DEFAULT, None)
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

VOLUMES: Final = tuple(
    Volume("1", "/data", capacity, int(capacity * share))
    # The largest is Java's largest long, in which Kafka reports sizes.
    for capacity in (1, 10**9, 10**12, 2**63 - 1)
    for share in (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0, 1.01)
)
"""Volumes of several sizes, each from empty to fuller than its capacity (blocks reserved for root)."""
