"""The cluster as a whole: Kafka's client quotas and those of the supplier cluster-quota, behind one face."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from quotahost.declared import cluster_quotas, enforcement
from quotahost.declared.changes import Change, Plan, compare
from quotahost.declared.cluster import Refusal, alter, client_quotas
from quotahost.declared.connection import Connection, connected
from quotahost.declared.document import Declared
from quotahost.declared.entities import Entity, Quotas
from quotahost.declared.problems import DeclarationError

_WAIT: Final = 10.0  # seconds until brokers have what the controller has taken
_POLL: Final = 0.1


class Target:
    """A running cluster.

    Attributes:
        warnings: what a person should know before he trusts what is shown.
    """

    def __init__(self, connection: Connection) -> None:
        """Nothing is asked yet."""
        self._connection = connection
        self.warnings: list[str] = []

    def present(self) -> Quotas:
        """All quotas that the cluster has.

        Raises:
            DeclarationError: there is no answer, or a right is missing.
        """
        told = cluster_quotas.ask(self._connection)
        self.warnings += told.warnings
        return {**client_quotas(self._connection), **(told.quotas or {})}

    def compare(self, declared: Declared, prune: bool) -> Plan:
        """What differs in the sections that the files have.

        Raises:
            DeclarationError: as of present; or no broker has the supplier cluster-quota that a file needs.
        """
        return compare(declared.quotas, self._in(declared.sections), prune=prune or declared.prune)

    def _in(self, sections: set[bool]) -> Quotas:
        found: dict[Entity, Mapping[str, float]] = {}
        if False in sections:
            found |= client_quotas(self._connection)
            self.warnings += enforcement.warnings(self._connection)
        if True in sections:
            told = cluster_quotas.ask(self._connection)
            if told.quotas is None:
                raise DeclarationError(told.reason)
            self.warnings += told.warnings
            found |= told.quotas
        return found

    def validate(self, changes: Sequence[Change]) -> list[Refusal]:
        """What Kafka would refuse; nothing is said about it without the right to change quotas."""
        kafkas = [change for change in changes if not change.entity.in_cluster]
        refused = alter(self._connection, kafkas, validate_only=True)
        return [each for each in refused if not each.no_right]

    def apply(self, changes: Sequence[Change]) -> list[Refusal]:
        """Make the changes, and tell what failed."""
        refused = alter(self._connection, [change for change in changes if not change.entity.in_cluster])
        others = [change for change in changes if change.entity.in_cluster]
        try:
            return refused + cluster_quotas.alter(self._connection, others)
        except DeclarationError as error:  # the first part is done, and what became of it must be told
            return refused + [Refusal(entity, str(error)) for entity in dict.fromkeys(each.entity for each in others)]

    def wait_until_made(self, changes: Sequence[Change], refusals: Sequence[Refusal]) -> tuple[Change, ...]:
        """Wait until brokers have the changes, 10 s at most; those that they still lack."""
        failed = {refusal.entity for refusal in refusals}
        until = time.monotonic() + _WAIT
        while left := self._left(changes):
            if time.monotonic() > until or all(change.entity in failed for change in left):
                break
            time.sleep(_POLL)
        return left

    def _left(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        sections = {change.entity.in_cluster for change in changes}
        present: dict[Entity, Mapping[str, float]] = {}
        if False in sections:
            present |= client_quotas(self._connection)
        if True in sections:
            present |= cluster_quotas.ask(self._connection).quotas or {}
        return tuple(change for change in changes if present.get(change.entity, {}).get(change.key) != change.after)


@contextmanager
def target(bootstrap: str, config: Mapping[str, str]) -> Iterator[Target]:
    """The cluster, connected for as long as the context lasts.

    Raises:
        DeclarationError: it can't be reached.
    """
    with connected(bootstrap, config) as connection:
        yield Target(connection)
