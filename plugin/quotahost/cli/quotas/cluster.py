"""What a running cluster has, and the way to what is declared: Kafka's client quotas, and the cluster-wide ones.

Kafka's controller has the first (``client_quotas``). The second are records of ``__quotahost_quotas``, one for each
entity (``quotahost.records.quotas``), which this module reads as brokers read them, and writes. Each section is asked
for only if files have it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from quotahost.cli.quotas import client_quotas
from quotahost.cli.quotas.client_quotas import CLIENT_ID, Connection
from quotahost.cli.quotas.declared import DeclarationError, Declared
from quotahost.cli.quotas.plan import Change, Entity, Plan, Quotas, Refusal, compare
from quotahost.errors import QuotahostError
from quotahost.kafka.commands import CompactedTopic
from quotahost.kafka.rights import ask as ask_rights
from quotahost.model import DEFAULT
from quotahost.records import quotas as records
from quotahost.records.codec import Refused

_WAIT: Final = 10.0  # seconds until brokers have what the controller has taken
_POLL: Final = 0.1
_MOST_WARNINGS: Final = 5  # about records that are refused


class Cluster:
    """A running cluster.

    Attributes:
        warnings: what a person should know before trusting what is shown.
    """

    def __init__(self, connection: Connection, config: Mapping[str, str], topic: str) -> None:
        """Nothing is asked yet.

        Args:
            connection: for Kafka's client quotas.
            config: librdkafka's, with ``bootstrap.servers``; it may contain secrets, of which nothing is shown.
            topic: that of the cluster-wide quotas.
        """
        self._connection, self._config = connection, config
        self._topic = CompactedTopic(config, topic, CLIENT_ID)
        self._latest = records.LatestQuotas()
        self.warnings: list[str] = []

    # ---- what it has ----

    def client_quotas(self) -> Quotas:
        """Kafka's client quotas.

        Raises:
            DeclarationError: there is no answer, or a right is missing.
        """
        return client_quotas.describe(self._connection)

    def cluster_quotas(self) -> Quotas:
        """The cluster-wide quotas; a warning names each record that no broker takes.

        Raises:
            DeclarationError: the topic can't be read.
        """
        refused = 0
        self._latest = latest = records.LatestQuotas()
        try:
            for key, value in self._topic.read():
                try:
                    latest.take(key, value)
                except Refused as problem:
                    refused += 1
                    if refused <= _MOST_WARNINGS:
                        words = f"brokers refuse the record {(key or b'')[:200]!r} of {self._topic.name}: {problem}"
                        self.warnings.append(words)
        except QuotahostError as error:
            raise DeclarationError(str(error)) from None
        if refused > _MOST_WARNINGS:
            self.warnings.append(f"... and {refused - _MOST_WARNINGS} more records of {self._topic.name}")
        return {_declared(quota.entity): _rates(quota) for quota in latest.by_entity.values()}

    def compare(self, declared: Declared, prune: bool) -> Plan:
        """What differs in the sections that the files have.

        Raises:
            DeclarationError: there is no answer, or a right is missing.
        """
        client = self.client_quotas() if False in declared.sections else {}
        of_cluster = self.cluster_quotas() if True in declared.sections else {}
        suppliers = {False: "client-quotas", True: "cluster-quota"}
        asked = [suppliers[section] for section in sorted(declared.sections)]
        self.warnings += client_quotas.not_enforced(self._connection, asked)
        return compare(declared.quotas, {**client, **of_cluster}, prune=prune or declared.prune)

    # ---- the way to what is declared ----

    def validate(self, plan: Plan) -> list[Refusal]:
        """What the cluster or its brokers would refuse."""
        refused = client_quotas.alter(self._connection, _of_kafka(plan), validate_only=True)
        entries, unwritable = _encoded(_in_cluster(plan))
        for key, (entity, value) in entries.items():
            try:
                self._latest.take(key, value)  # as brokers will: they keep so many entities at most
            except Refused as problem:
                unwritable[entity] = f"brokers would refuse it: {problem}"
        if entries and (lacking := self._lacking()):
            unwritable = {entity: lacking for entity, _ in entries.values()}
        return refused + [Refusal(entity, reason) for entity, reason in unwritable.items()]

    def _lacking(self) -> str:
        """The right to write to the topic of the cluster-wide quotas, if this client lacks it; else ""."""
        topic = self._topic.name
        try:
            rights = ask_rights(self._config, [topic])
        except QuotahostError as error:
            raise DeclarationError(f"the cluster doesn't say who may write to {topic}: {error}") from None
        if topic in rights.missing:
            return "" if rights.missing[topic] else f"this client may not create {topic}; see docs/security.md"
        may_write = rights.own[topic] & {"Write", "All"}
        return "" if may_write else f"this client may not write to {topic}; see docs/security.md"

    def apply(self, plan: Plan) -> list[Refusal]:
        """Make the changes, and tell what failed."""
        refused = client_quotas.alter(self._connection, _of_kafka(plan))
        entries, unwritable = _encoded(_in_cluster(plan))
        refused += [Refusal(entity, reason) for entity, reason in unwritable.items()]
        try:
            failed = self._topic.write({key: value for key, (_, value) in entries.items()})
            return refused + [Refusal(entries[key][0], reason) for key, reason in failed.items()]
        except QuotahostError as error:  # the first part is done, and what became of it must be told
            return refused + [Refusal(entity, str(error)) for entity, _ in entries.values()]

    def wait_until_made(self, plan: Plan, refusals: list[Refusal]) -> tuple[Change, ...]:
        """The changes that were not made. Brokers have Kafka's 10 s at most after the controller has taken them.

        A cluster-wide quota is made once its record is written: each broker follows the topic.
        """
        failed = {refusal.entity for refusal in refusals}
        until = time.monotonic() + _WAIT
        waiting = [change for change in _of_kafka(plan) if change.entity not in failed]
        while waiting:
            present = self.client_quotas()
            waiting = [change for change in waiting if present.get(change.entity, {}).get(change.key) != change.after]
            if not waiting or time.monotonic() > until:
                break
            time.sleep(_POLL)
        left = set(waiting)
        return tuple(change for change in plan.changes if change.entity in failed or change in left)


def _of_kafka(plan: Plan) -> list[Change]:
    return [change for change in plan.changes if not change.entity.in_cluster]


def _in_cluster(plan: Plan) -> Quotas:
    return {entity: rates for entity, rates in plan.wanted.items() if entity.in_cluster}


def _encoded(wanted: Quotas) -> tuple[dict[bytes, tuple[Entity, bytes | None]], dict[Entity, str]]:
    """Entity and value by the record's key, None where the quota goes; and by entity why no reader takes it."""
    entries: dict[bytes, tuple[Entity, bytes | None]] = {}
    refused: dict[Entity, str] = {}
    for entity, rates in wanted.items():
        quota = records.ClusterQuota(_recorded(entity), rates.get("produce"), rates.get("fetch"))
        try:
            entries[records.key_of(quota.entity)] = (entity, records.encode(quota) if rates else None)
        except Refused as problem:
            refused[entity] = f"brokers would refuse it: {problem}"
    return entries, refused


def _recorded(entity: Entity) -> records.Entity:
    if entity.user is DEFAULT:
        return records.DEFAULT
    return records.Entity(entity.user, None if entity.client_id is None else str(entity.client_id))


def _declared(entity: records.Entity) -> Entity:
    user = DEFAULT if entity == records.DEFAULT else entity.user
    return Entity(user, entity.client_id, in_cluster=True)


def _rates(quota: records.ClusterQuota) -> dict[str, float]:
    return {kind: rate for kind, rate in quota._asdict().items() if kind != "entity" and rate is not None}
