"""What a running cluster has, and the way to what is declared, for Kafka's client quotas and the cluster-wide ones.

1. :func:`cluster_at` connects. Kafka's controller has the client quotas (``client_quotas``); the cluster-wide ones are
   records of ``__quotahost_quotas``, one for each entity, which are read here as brokers read them.
   Budgets of storage are records of the same topic.
2. :meth:`Cluster.compare` asks for the sections that the files have, and makes the plan.
3. :meth:`Cluster.change` has the plan validated, or makes it; it returns what was refused.
4. :meth:`Cluster.not_made` waits until brokers have what the controller has taken.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quotahost.cli.property_files import read_client_config
from quotahost.cli.quotas import client_quotas
from quotahost.cli.quotas import plan as plans
from quotahost.cli.quotas.client_quotas import CLIENT_ID, Connection
from quotahost.cli.quotas.files import Declared
from quotahost.cli.quotas.plan import CLIENTS, Amount, Change, Entity, Plan, Quotas, Refusals
from quotahost.errors import QuotahostError, Unusable
from quotahost.kafka.commands import CompactedTopic
from quotahost.kafka.rights import ask as ask_rights
from quotahost.model import DEFAULT
from quotahost.model.budgets import Budget
from quotahost.records import budgets
from quotahost.records import quotas as records
from quotahost.records.codec import Refused
from quotahost.text import bounded

_WAIT: Final = 10.0  # seconds until brokers have what the controller has taken
_POLL: Final = 0.1
_MOST_WARNINGS: Final = 5  # about records that are refused


@contextmanager
def cluster_at(bootstrap: str, client_config: Path | None, topic: str) -> Iterator["Cluster"]:
    """The cluster, for as long as the context lasts; ``topic`` is that of its cluster-wide quotas.

    Raises Unusable for whatever can't be used.
    """
    try:
        config = read_client_config(client_config)
        with client_quotas.connected(bootstrap, config) as connection:
            yield Cluster(connection, {**config, "bootstrap.servers": bootstrap}, topic)
    except QuotahostError as error:
        raise Unusable(str(error)) from None


class Cluster:
    """A running cluster. Each method raises a QuotahostError if there is no answer, or a right is missing.

    ``warnings`` are what a person should know before trusting what is shown.
    """

    def __init__(self, connection: Connection, config: dict[str, str], topic: str) -> None:
        """Nothing is asked yet; ``config`` is librdkafka's, with secrets of which nothing is shown."""
        self._connection, self._config = connection, config
        self._topic = CompactedTopic(config, topic, CLIENT_ID)
        self._read = records.LatestQuotas(), budgets.LatestBudgets()
        self.warnings: list[str] = []

    def client_quotas(self) -> Quotas:
        """Kafka's client quotas."""
        return client_quotas.describe(self._connection)

    def recorded(self) -> Quotas:
        """The cluster-wide quotas and budgets of storage; a warning names each record that no broker takes."""
        quotas, sizes = self._read = records.LatestQuotas(), budgets.LatestBudgets()
        refused = []
        for key, value in self._topic.read():
            try:
                quotas.take(key, value)
                sizes.take(key, value)
            except Refused as problem:
                refused.append(f"brokers refuse the record {(key or b'')[:200]!r} of {self._topic.name}: {problem}")
        self.warnings += bounded(refused, _MOST_WARNINGS, f"records of {self._topic.name}")
        found: dict[Entity, dict[str, Amount]] = {}
        for name, quota in quotas.by_name.items():
            rates = {"produce": quota.produce, "fetch": quota.fetch}
            entity = Entity(DEFAULT if name == records.DEFAULT else name.user, name.client_id, in_cluster=True)
            found[entity] = {kind: rate for kind, rate in rates.items() if rate is not None}
        for budget in sizes.by_name.values():
            of, topics = "replicas" if budget.replicas else "leaders", ", ".join(sorted(set(budget.topics)))
            found[Entity(budget=budget.name)] = {"topics": topics, "bytes": budget.bytes, "of": of}
        return found

    def compare(self, declared: Declared, prune: bool) -> Plan:
        """What differs in the sections that the files have."""
        present = dict(self.client_quotas()) if CLIENTS in declared.sections else {}
        if declared.sections - {CLIENTS}:
            recorded = self.recorded()
            present |= {entity: amounts for entity, amounts in recorded.items() if entity.section in declared.sections}
        self.warnings += client_quotas.not_enforced(self._connection, declared.sections)
        return plans.compare(declared.quotas, present, prune=prune or declared.prune)

    def change(self, plan: Plan, *, validate_only: bool = False) -> Refusals:
        """Make the changes, or ask who would refuse them; all of an entity's are made, or none."""
        refusals = client_quotas.alter(self._connection, _of_kafka(plan), validate_only=validate_only)
        entities: dict[bytes, Entity] = {}
        values: dict[bytes, bytes | None] = {}
        recorded = [entity for entity in plan.wanted if entity.section != CLIENTS]
        # What is removed comes first: brokers keep so many at most, and refuse what would be one more.
        for entity in sorted(recorded, key=lambda entity: bool(plan.wanted[entity])):
            try:
                key, value = _record(entity, plan.wanted[entity])
                for latest in self._read:  # as brokers will
                    latest.take(key, value)
            except Refused as problem:
                refusals[entity] = f"brokers would refuse it: {problem}"
            else:
                entities[key], values[key] = entity, value
        if validate_only:
            lacking = self._lacking() if values else ""
            return refusals | (dict.fromkeys(entities.values(), lacking) if lacking else {})
        try:
            return refusals | {entities[key]: why for key, why in self._topic.write(values).items()}
        except QuotahostError as error:  # the client quotas are changed, and what became of them must be told
            return refusals | dict.fromkeys(entities.values(), str(error))

    def _lacking(self) -> str:
        """The right to write to the topic of the cluster-wide quotas, if this client lacks it; else ""."""
        topic = self._topic.name
        try:
            rights = ask_rights(self._config, [topic])
        except QuotahostError as error:
            raise QuotahostError(f"the cluster doesn't say who may write to {topic}: {error}") from None
        if rights.missing.get(topic) or rights.own.get(topic, frozenset()) & {"Write", "All"}:
            return ""
        act = "create" if topic in rights.missing else "write to"
        return f"this client may not {act} {topic}; see docs/security.md"

    def not_made(self, plan: Plan, refusals: Refusals) -> list[Change]:
        """The changes that were not made. Brokers have Kafka's 10 s at most after the controller has taken them.

        A cluster-wide quota is made once its record is written: each broker follows the topic.
        """
        until = time.monotonic() + _WAIT
        left = {change for change in _of_kafka(plan) if change.entity not in refusals}
        while left:
            present = self.client_quotas()
            left = {change for change in left if present.get(change.entity, {}).get(change.key) != change.after}
            if not left or time.monotonic() > until:
                break
            time.sleep(_POLL)
        return [change for change in plan.changes if change.entity in refusals or change in left]


def _of_kafka(plan: Plan) -> list[Change]:
    return [change for change in plan.changes if change.entity.section == CLIENTS]


def _record(entity: Entity, amounts: Mapping[str, Amount]) -> tuple[bytes, bytes | None]:
    """Key and value of the record of an entity, without a value if it has nothing. Raises Refused as brokers would."""
    if entity.budget is not None:
        key = budgets.key_of(entity.budget)
        if not amounts:
            return key, None
        topics = tuple(amounts["topics"].split(", "))
        return key, budgets.encode(Budget(entity.budget, topics, amounts["bytes"], amounts["of"] == "replicas"))
    user = None if entity.user is DEFAULT else entity.user
    client_id = None if entity.client_id is None else str(entity.client_id)
    key = records.key_of(records.Entity(user, client_id))
    return key, records.encode(records.ClusterQuota(**amounts)) if amounts else None
