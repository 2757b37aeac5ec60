"""The records of the cluster-wide client quotas: one for each entity, its key and its value, and a reader's bounds.

The record's key names the entity in the form of Kafka's config paths, and a null value removes the quota. Each entity
has a record of its own, so two operators can change different entities at the same time and lose nothing. A reader
keeps each entity's latest quota (:class:`LatestQuotas`), within bounds.
"""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import quote, unquote

from pydantic import Field

from quotahost.model import QuotaType
from quotahost.records.budgets import is_key as is_budget
from quotahost.records.by_name import LatestByName
from quotahost.records.codec import As, Codec, Refused, Versioned

#: The limit of both names of an entity together, in bytes of UTF-8. A client with longer names has no share of its own,
#: either (``pipeline.shares.MAX_CLIENT``).
MAX_NAMES: Final = 2048
#: The entities that a reader keeps, and the bytes of all their keys: both bound the memory that they take on a broker.
MAX_ENTITIES: Final = 250_000
MAX_KEYS: Final = 32 * 1024 * 1024
_MAX_BYTES: Final = 4096  # of a value, with room for fields that a later version adds
_MAX_KEY: Final = 3 * MAX_NAMES + len("users//clients/")
_DEFAULT: Final = "users/<default>"
_NAME: Final = "(?:[A-Za-z0-9._-]|%[0-9A-F]{2})"
_KEY: Final = re.compile(f"users/({_NAME}+)(?:/clients/({_NAME}*))?|clients/({_NAME}+)")


class Entity(NamedTuple):
    """The clients of a quota: a user, a client-id or both; with neither, all clients that no other entity names."""

    user: str | None
    client_id: str | None


DEFAULT: Final = Entity(None, None)


# ---- key -------------------------------------------------------------------------------------------


def key_of(entity: Entity) -> bytes:
    """The record's key: ``users/alice``, ``clients/app``, ``users/alice/clients/app``, or ``users/<default>``.

    Names are percent-encoded as by Kafka's ``Sanitizer.sanitize``, so a user ``<default>`` is ``users/%3Cdefault%3E``.
    Raises Refused (key) for names that are too long or no valid Unicode, an empty user, or only an empty client-id.
    """
    if entity == DEFAULT:
        return _DEFAULT.encode()
    try:
        octets = sum(len(name.encode()) for name in entity if name is not None)
    except UnicodeEncodeError:
        raise Refused("key", "a name is no valid Unicode") from None
    if octets > MAX_NAMES:
        raise Refused("key", f"the names have {octets:,} bytes, more than {MAX_NAMES:,}")
    if entity.user == "" or (entity.user is None and entity.client_id == ""):
        raise Refused("key", f"the entity has no name; for the default, use the key {_DEFAULT}")
    kinds = {"users": entity.user, "clients": entity.client_id}
    encoded = {kind: quote(name, safe="").replace("~", "%7E") for kind, name in kinds.items() if name is not None}
    return "/".join(f"{kind}/{name}" for kind, name in encoded.items()).encode()


def entity_of(key: bytes | None) -> Entity:
    """The entity of a record's key. Raises Refused (key) if the key is not exactly in the form of :func:`key_of`."""
    if key is None or len(key) > _MAX_KEY:
        raise Refused("key", "the record has no key" if key is None else f"the key has {len(key):,} bytes")
    text = key.decode("ascii", errors="replace")
    if text == _DEFAULT:
        return DEFAULT
    if matched := _KEY.fullmatch(text):
        user, of_user, client_id = matched.groups()
        entity = Entity(user, client_id if of_user is None else of_user)
        # The decoded entity must give the same key, because an entity has only one key.
        entity = Entity(*(name and unquote(name) for name in entity))
        if key_of(entity) == key:
            return entity
    raise Refused("key", f"the key {text[:100]!r} names no entity, such as users/alice/clients/app")


# ---- value -----------------------------------------------------------------------------------------

_UNLIMITED: Final = "unlimited"
_Rate = Annotated[
    float | None,
    As(
        Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["unlimited"] | None,
        lambda rate, _: math.inf if isinstance(rate, str) else rate,
        lambda rate: _UNLIMITED if rate == math.inf else rate,
    ),
]


@dataclass(frozen=True, slots=True)
class ClusterQuota(Versioned):
    """The rates of one entity; infinity is unlimited."""

    produce: _Rate = None  # bytes/s that the entity may produce in the whole cluster; None for no quota
    fetch: _Rate = None  # bytes/s that the entity may fetch in the whole cluster; None for no quota

    def rate(self, quota_type: QuotaType) -> float | None:
        """The rate of this type; None for a type that has no cluster-wide quotas."""
        return {QuotaType.PRODUCE: self.produce, QuotaType.FETCH: self.fetch}.get(quota_type)


CODEC: Final = Codec(ClusterQuota, _MAX_BYTES)
encode, decode = CODEC.encode, CODEC.decode


class LatestQuotas(LatestByName[Entity, ClusterQuota]):
    """Keeps each entity's quota."""

    most, most_octets = MAX_ENTITIES, MAX_KEYS

    def name_of(self, key: bytes | None) -> Entity | None:
        return None if is_budget(key) else entity_of(key)

    def decode(self, name: Entity, value: bytes) -> ClusterQuota:
        return decode(None, value)
