"""``compare`` plans the changes by which a cluster gets the quotas that files declare; ``--prune`` removes others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from quotahost.base.text import printable
from quotahost.model import DEFAULT, Default
from quotahost.model.budgets import Budget

#: The text for the default entity in files and in Kafka's tools; a real name with this text is written differently.
DEFAULT_NAME: Final = DEFAULT.value
#: The unit of each key: Kafka's keys for users, client-ids and addresses (``QuotaConfig``), and ours. Texts have none.
UNITS: Final = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "%",
    "controller_mutation_rate": "mutations/s",
    "connection_creation_rate": "connections/s",
    "produce": "bytes/s",
    "fetch": "bytes/s",
    "bytes": "bytes",
}
#: The sections of a file. Each entity belongs to a section; only the sections that a file has are managed.
CLIENTS, CLUSTER, BUDGETS = "quotas", "cluster-quotas", "budgets"

Name: TypeAlias = str | Default | None  # None: not part of the entity


@dataclass(frozen=True, slots=True)
class Entity:
    """The clients that a quota is for: a user, a client-id, both, or an address; each is a name or Kafka's default."""

    user: Name = None
    client_id: Name = None
    ip: Name = None
    #: True for a cluster-wide quota, False for Kafka's own client quotas. The default cluster-wide quota, for every
    #: client that no other entity names, has the user DEFAULT.
    in_cluster: bool = False
    budget: str | None = None  # the name of a budget of storage, which has no other names
    refused: bytes | None = None  # the key of a record that brokers refuse; in_cluster is True for each such record

    @property
    def section(self) -> str:
        return CLUSTER if self.in_cluster else CLIENTS if self.budget is None else BUDGETS

    def parts(self) -> dict[str, str | Default]:
        """Return the entity's names, by Kafka's words for their kinds."""
        names = {"user": self.user, "client-id": self.client_id, "ip": self.ip, "budget": self.budget}
        names["record"] = None if self.refused is None else repr(self.refused)
        return {kind: name for kind, name in names.items() if name is not None}

    def as_budget(self, keys: "Mapping[str, Amount]") -> Budget:
        """Return the budget as brokers have it, from the values of the entity's keys."""
        assert self.budget is not None
        return Budget(self.budget, tuple(keys["topics"].split(", ")), keys["bytes"], keys["of"] == "replicas")

    def __str__(self) -> str:
        """Return the text for tables; a name that looks like the default is in quotes."""
        shown = " ".join(f"{kind} {_shown(name)}" for kind, name in self.parts().items())
        return f"cluster: {shown}" if self.in_cluster and self.refused is None else shown

    def order(self) -> tuple[object, ...]:
        """Return a sort key for people: by kind, the defaults first."""
        kinds = tuple(self.parts())
        names = tuple((name is not DEFAULT, "" if name is DEFAULT else name) for name in self.parts().values())
        return (self.budget is not None, self.in_cluster, "ip" in kinds, "user" not in kinds, names)


def _shown(name: str | Default) -> str:
    if name is DEFAULT:
        return DEFAULT_NAME
    return repr(name) if name == DEFAULT_NAME else printable(str(name))


#: The value of a key: a rate or bytes; for two keys of budgets a text.
Amount: TypeAlias = Any
#: Quotas by entity, then by Kafka's key or by the type of a cluster-wide quota; "unlimited" is infinity there.
Quotas: TypeAlias = Mapping[Entity, Mapping[str, Amount]]
#: The reasons, by entity, for which the cluster refuses the entity's changes.
Refusals: TypeAlias = dict[Entity, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One quota that differs: ``before`` is in the cluster, ``after`` is declared; None means no quota."""

    entity: Entity
    key: str
    before: Amount | None
    after: Amount | None

    @property
    def what(self) -> str:
        return "add" if self.before is None else "remove" if self.after is None else "change"


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to make, and the quotas that no file declares."""

    changes: tuple[Change, ...]  # in the order in which they are shown and made
    wanted: Quotas  # all quotas, after the changes, of each entity with a change
    not_managed: tuple[Change, ...]  # the quotas of entities that no file names


def compare(declared: Quotas, present: Quotas, *, prune: bool) -> Plan:
    """Return the plan for the cluster; with ``prune``, an entity that isn't declared loses all its quotas."""
    undeclared = {entity: rates for entity, rates in present.items() if entity not in declared}
    wanted = {**declared, **({entity: {} for entity in undeclared} if prune else {})}
    changes = tuple(change for change in _both(wanted, present) if change.before != change.after)
    kept = () if prune else tuple(_both(undeclared, undeclared))
    return Plan(changes, {change.entity: wanted[change.entity] for change in changes}, kept)


def _both(wanted: Quotas, present: Quotas) -> list[Change]:
    return [
        Change(entity, key, present.get(entity, {}).get(key), wanted[entity].get(key))
        for entity in sorted(wanted, key=Entity.order)
        for key in sorted({*present.get(entity, {}), *wanted[entity]})
    ]
