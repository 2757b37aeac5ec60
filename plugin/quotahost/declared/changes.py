"""Compares what files declare with what a cluster has: the changes that would make them agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quotahost.declared.entities import Entity, Quotas


@dataclass(frozen=True, slots=True)
class Change:
    """One quota that differs.

    Attributes:
        before: what the cluster has; None if nothing.
        after: what is declared; None if nothing.
    """

    entity: Entity
    key: str
    before: float | None
    after: float | None

    @property
    def what(self) -> str:
        """Add, change or remove."""
        if self.before is None:
            return "add"
        return "remove" if self.after is None else "change"


@dataclass(frozen=True, slots=True)
class Plan:
    """What differs, and what nobody declared.

    Attributes:
        changes: in the order in which they are shown and made.
        not_managed: quotas of entities that no file names; they stay.
    """

    changes: tuple[Change, ...]
    not_managed: tuple[Change, ...]


def compare(declared: Quotas, present: Quotas, *, prune: bool) -> Plan:
    """What has to change in the cluster.

    An entity that is declared has the declared quotas and no others. One that isn't declared loses all its quotas if
    ``prune``, and otherwise keeps them.
    """
    wanted = dict(declared)
    unnamed = [entity for entity in present if entity not in declared]
    if prune:
        wanted |= {entity: {} for entity in unnamed}
    kept = () if prune else tuple(_kept(unnamed, present))
    return Plan(tuple(_changes(wanted, present)), kept)


def _changes(wanted: Quotas, present: Quotas) -> Iterable[Change]:
    for entity in sorted(wanted, key=Entity.order):
        before, after = present.get(entity, {}), wanted[entity]
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                yield Change(entity, key, before.get(key), after.get(key))


def _kept(entities: Iterable[Entity], present: Quotas) -> Iterable[Change]:
    for entity in sorted(entities, key=Entity.order):
        for key, value in sorted(present[entity].items()):
            yield Change(entity, key, value, value)
