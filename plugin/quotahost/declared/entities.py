"""Whom a quota is for, and how much: the values that files and clusters are compared by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from quotahost.text import printable

#: How a file and Kafka's tools write the default entity.
DEFAULT_NAME: Final = "<default>"


class Default(Enum):
    """Kafka's default entity, which no name of a user, client-id or address can be."""

    DEFAULT = DEFAULT_NAME


DEFAULT: Final = Default.DEFAULT
Name: TypeAlias = str | Default | None  # None: not part of the entity


@dataclass(frozen=True, slots=True)
class Entity:
    """Whom a quota is for: a user, a client-id, both, or an address; each a name or Kafka's default.

    Attributes:
        in_cluster: it is about the supplier ``cluster-quota``, not about Kafka's own client quotas. Its default, for
            every client that no other entity names, is the user DEFAULT.
    """

    user: Name = None
    client_id: Name = None
    ip: Name = None
    in_cluster: bool = False

    def parts(self) -> dict[str, str | Default]:
        """The names that it has, by Kafka's words for their kinds."""
        named = {"user": self.user, "client-id": self.client_id, "ip": self.ip}
        return {kind: name for kind, name in named.items() if name is not None}

    def __str__(self) -> str:
        """As a table shows it; a name that looks like the default is in quotes."""
        shown = " ".join(f"{kind} {_shown(name)}" for kind, name in self.parts().items())
        return f"cluster: {shown}" if self.in_cluster else shown

    def order(self) -> tuple[object, ...]:
        """Sorts as people look for it: by kind, the defaults first."""
        kinds = tuple(self.parts())
        names = tuple((name is not DEFAULT, "" if name is DEFAULT else name) for name in self.parts().values())
        return (self.in_cluster, "ip" in kinds, "user" not in kinds, names)


#: Quotas by entity, and by the key of Kafka or of cluster-quota. Infinity stands for "unlimited" of cluster-quota.
Quotas: TypeAlias = Mapping[Entity, Mapping[str, float]]

#: Kafka's keys for users and client-ids (``QuotaConfig``), and the unit of each.
OF_CLIENTS: Final = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "%",
    "controller_mutation_rate": "mutations/s",
}
OF_ADDRESSES: Final = {"connection_creation_rate": "connections/s"}
OF_CLUSTER: Final = {"produce": "bytes/s", "fetch": "bytes/s"}
UNITS: Final = OF_CLIENTS | OF_ADDRESSES | OF_CLUSTER


def keys_of(entity: Entity) -> Mapping[str, str]:
    """The keys that an entity may have, with their units."""
    if entity.in_cluster:
        return OF_CLUSTER
    return OF_CLIENTS if entity.ip is None else OF_ADDRESSES


def _shown(name: str | Default) -> str:
    if name is DEFAULT:
        return DEFAULT_NAME
    text = str(name)
    return repr(text) if text == DEFAULT_NAME else printable(text)
