"""Reads and changes the quotas of the supplier ``cluster-quota``: dynamic properties, the default of all brokers.

Kafka hides the values of properties that it doesn't know, so a broker is asked in another way: it validates a change
that sets ``tell``, and refuses it with all quotas that are in force there. Nothing is changed by that.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quotahost.broker.plugins.cluster_quota.rates import NAME
from quotahost.declared.changes import Change
from quotahost.declared.cluster import NO_RIGHT, Refusal
from quotahost.declared.configs import change as change_configs
from quotahost.declared.connection import Connection
from quotahost.declared.entities import DEFAULT, Entity, Quotas
from quotahost.declared.problems import DeclarationError
from quotahost.declared.properties import OURS, properties
from quotahost.settings.declaration import PREFIX
from quotahost.settings.telling import TOLD


@dataclass(frozen=True, slots=True)
class Told:
    """What the brokers have.

    Attributes:
        quotas: those of the first broker; None if they aren't known.
        reason: why not.
        warnings: what differs from broker to broker.
    """

    quotas: Quotas | None
    reason: str = ""
    warnings: tuple[str, ...] = ()


def ask(connection: Connection) -> Told:
    """The quotas that are in force.

    Raises:
        DeclarationError: there is no answer.
    """
    brokers = connection.brokers()
    answers = [_ask(connection, broker) for broker in brokers]
    first = answers[0]
    others = [broker for broker, each in zip(brokers, answers, strict=True) if each.quotas != first.quotas]
    if first.quotas is None or not others:
        return first
    named = ", ".join(map(str, others))
    words = f"broker {named} has other cluster-wide quotas than broker {brokers[0]}, which is compared"
    return Told(first.quotas, "", (f"{words}; look at its server.properties",))


def _ask(connection: Connection, broker: int) -> Told:
    answer = change_configs(connection, {f"{OURS}tell": "true"}, broker, validate_only=True)
    message = answer.error_message or ""
    if answer.error_code == NO_RIGHT:
        return Told(None, "may not ask for cluster-wide quotas; give the principal AlterConfigs on the cluster")
    if TOLD not in message:
        remedy = f"set {PREFIX}supplier={NAME},client-quotas, or leave cluster-quotas out of the files"
        return Told(None, f"broker {broker} doesn't tell cluster-wide quotas; {remedy}")
    told, _ = json.JSONDecoder().raw_decode(message.split(TOLD, 1)[1])
    return Told(_quotas(told))


def _quotas(told: Mapping[str, Iterable[tuple[str | None, str | None, float | None]]]) -> Quotas:
    found: dict[Entity, dict[str, float]] = defaultdict(dict)
    for key, rates in told.items():
        for user, client_id, rate in rates:
            default = user is None and client_id is None
            entity = Entity(DEFAULT if default else user, client_id, in_cluster=True)
            found[entity][key] = math.inf if rate is None else rate
    return dict(found)


def alter(connection: Connection, changes: Sequence[Change]) -> list[Refusal]:
    """Make changes, all or none. What else the properties say stays.

    Raises:
        DeclarationError: there is no answer.
    """
    if not changes:
        return []
    told = ask(connection)
    if told.quotas is None:
        raise DeclarationError(told.reason)
    after = {entity: dict(quotas) for entity, quotas in told.quotas.items()}
    for change in changes:
        quotas = after.setdefault(change.entity, {})
        quotas.pop(change.key, None)
        if change.after is not None:
            quotas[change.key] = change.after
    written, before = properties(after), properties(told.quotas)
    answer = change_configs(connection, {name: text for name, text in written.items() if text != before[name]})
    if not answer.error_code:
        return []
    reason = answer.error_message or f"error {answer.error_code}"
    entities = dict.fromkeys(change.entity for change in changes)
    return [Refusal(entity, reason, answer.error_code == NO_RIGHT) for entity in entities]
