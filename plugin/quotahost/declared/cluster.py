"""Reads and changes a running cluster's client quotas (KIP-546, DescribeClientQuotas and AlterClientQuotas)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from quotahost.declared.changes import Change
from quotahost.declared.connection import Connection
from quotahost.declared.entities import DEFAULT, Entity, Quotas
from quotahost.declared.problems import DeclarationError

_AT_ONCE: Final = 500  # entities in a request; the controller takes 10,000 records at once
NO_RIGHT: Final = 31  # Errors.CLUSTER_AUTHORIZATION_FAILED


@dataclass(frozen=True, slots=True)
class Refusal:
    """Changes of one entity that Kafka refused, and why."""

    entity: Entity
    reason: str
    no_right: bool = False


def client_quotas(connection: Connection) -> Quotas:
    """All client quotas of the cluster.

    Raises:
        DeclarationError: there is no answer, or the right to ask is missing (DescribeConfigs on the cluster).
    """
    answer = connection.ask(DescribeClientQuotasRequest(components=[], strict=False))
    if answer.error_code == NO_RIGHT:
        raise DeclarationError("may not read client quotas; give the principal DescribeConfigs on the cluster")
    if answer.error_code:
        raise DeclarationError(f"the cluster refuses to tell its client quotas: {answer.error_message}; try again")
    return {_entity(entry.entity): {each.key: each.value for each in entry.values} for entry in answer.entries or ()}


def alter(connection: Connection, changes: Sequence[Change], *, validate_only: bool = False) -> list[Refusal]:
    """Make changes, or have them validated only; all of an entity's are made, or none.

    Raises:
        DeclarationError: there is no answer. What was asked before may have been done.
    """
    refused = []
    entries = [_entry(entity, each) for entity, each in _by_entity(changes)]
    for first in range(0, len(entries), _AT_ONCE):
        some = entries[first : first + _AT_ONCE]
        answer = connection.ask(AlterClientQuotasRequest(entries=some, validate_only=validate_only))
        refused += [
            Refusal(_entity(each.entity), each.error_message or f"error {each.error_code}", each.error_code == NO_RIGHT)
            for each in answer.entries
            if each.error_code
        ]
    return sorted(refused, key=lambda each: each.entity.order())


def _by_entity(changes: Iterable[Change]) -> Iterator[tuple[Entity, list[Change]]]:
    in_order = sorted(changes, key=lambda change: change.entity.order())
    for entity, each in groupby(in_order, key=lambda change: change.entity):
        yield entity, list(each)


def _entry(entity: Entity, changes: Iterable[Change]) -> Any:
    form = AlterClientQuotasRequest.EntryData
    parts = [
        form.EntityData(entity_type=kind, entity_name=None if name is DEFAULT else name)
        for kind, name in entity.parts().items()
    ]
    operations = [
        form.OpData(key=change.key, value=change.after or 0.0, remove=change.after is None) for change in changes
    ]
    return form(entity=parts, ops=operations)


def _entity(parts: Iterable[Any]) -> Entity:
    """The entity of Kafka's answer, in which no name stands for the default."""
    names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return Entity(names.get("user"), names.get("client-id"), names.get("ip"))
