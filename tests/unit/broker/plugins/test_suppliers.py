"""Tests the suppliers: ``static``, ``overrides`` (KIP-13) and ``controller-mutation`` (KIP-599) by their properties,
and ``client-quotas`` against a plain model of Kafka's precedence, tags and limits.

The model follows the rules of Kafka 4.3.1's DefaultQuotaCallback and has Kafka's tags.
"""

import math
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotahost import model
from quotahost.api import Role
from quotahost.broker.plugins.suppliers.client_quotas import ClientQuotas
from quotahost.model import DEFAULT, QUOTA_TYPES, Client, Quota, QuotaType, Scope, ScopeKind
from quotahost.testing import FakeHost
from tests.fakes.plugin_context import context

PRODUCE, FETCH, MUTATION = QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.CONTROLLER_MUTATION
KIP_13 = {
    "quota.producer.default": "2M",
    "quota.consumer.default": "2M",
    "quota.producer.override": "clientA:4M,clientB:10M",
    "quota.consumer.override": "clientC:3M,clientD:5M",
}
KIP_599 = {"default": "5", "users": "alice:10,root:unlimited", "client-ids": "terraform:20"}
STATIC = {"produce": "1M", "fetch": "2M", "request": "50", "controller-mutation": "5.5"}


def host(supplier: str, own: dict[str, str]) -> FakeHost[Any]:
    """The supplier with these properties, whose names lack the supplier's prefix."""
    begin = "static." if supplier == "static" else f"plugin.{supplier}."
    return FakeHost(Role.SUPPLIER, supplier, {"supplier": supplier} | {begin + name: own[name] for name in own})


def by_client_id(produce: float | None, fetch: float | None) -> dict[QuotaType, Quota]:
    return {PRODUCE: Quota(produce, Scope.CLIENT_ID), FETCH: Quota(fetch, Scope.CLIENT_ID)}


@pytest.mark.proves("kip-13.static-config", "kip-13.default-quota", "proposal-035.static")
@pytest.mark.parametrize(
    ("supplier", "own", "user", "client_id", "quotas"),
    [
        # KIP-13's own names and values: each client-id has its override or the default.
        *(("overrides", KIP_13, user, client_id, by_client_id(produce, fetch))
          for user, client_id, produce, fetch in (
              ("ANONYMOUS", "clientA", 4e6, 2e6), ("ANONYMOUS", "clientD", 2e6, 5e6), ("ANONYMOUS", "other", 2e6, 2e6),
              ("alice", "", 2e6, 2e6), ("bob", "", 2e6, 2e6))),
        # If there is no default, the next supplier decides for other clients. Unlimited is an answer, too.
        *(("overrides", {"quota.producer.override": "clientA:4M"}, "alice", client_id, quotas)
          for client_id, quotas in (("clientA", {PRODUCE: Quota(4e6, Scope.CLIENT_ID)}), ("other", {}))),
        ("overrides", {"quota.producer.default": "unlimited", "quota.consumer.override": "a:unlimited"}, "alice", "a",
         by_client_id(None, None)),
        # A user's rate comes before a client-id's, and both before the default.
        *(("controller-mutation", KIP_599, user, client_id, {MUTATION: quota}) for user, client_id, quota in (
            ("alice", "terraform", Quota(10, Scope.USER)), ("root", "terraform", Quota(None, Scope.USER)),
            ("bob", "terraform", Quota(20, Scope.CLIENT_ID)), ("bob", "app", Quota(5, Scope.USER)))),
        ("controller-mutation", KIP_599 | {"scope": "client-id"}, "bob", "app", {MUTATION: Quota(5, Scope.CLIENT_ID)}),
        ("controller-mutation", {"users": "alice:5"}, "bob", "app", {}),
        # Every client gets the rate of the type, in the property's scope.
        *(("static", STATIC, user, client_id,
           {kind: Quota(rate, Scope.BROKER) for kind, rate in zip(QUOTA_TYPES, (1e6, 2e6, 50, 5.5), strict=True)})
          for user, client_id in (("alice", "app"), ("CN=a,O=b", ""))),
        ("static", {"fetch": "2M"}, "alice", "app", {FETCH: Quota(2e6, Scope.BROKER)}),
        *(("static", {"fetch": "1M", "scope": name}, "alice", "app", {FETCH: Quota(1e6, scope)}) for name, scope in (
            ("client", Scope.CLIENT), ("user", Scope.USER), ("client-id", Scope.CLIENT_ID), ("broker", Scope.BROKER))),
    ],
)  # fmt: skip
def test_a_client_gets_what_the_properties_say(
    supplier: str, own: dict[str, str], user: str, client_id: str, quotas: dict[QuotaType, Quota]
) -> None:
    with host(supplier, own) as given:
        answers = {kind: given.quota(user, client_id, kind) for kind in QUOTA_TYPES}
    assert {kind: quota for kind, quota in answers.items() if quota} == quotas


# ---- client-quotas ----


Name: TypeAlias = str | model.Default | None
Entity: TypeAlias = tuple[Name, Name]  # (user, client-id); None: the entity has no such part
Change: TypeAlias = tuple[QuotaType, Entity, float | None]
Answer: TypeAlias = tuple[tuple[str, str], float | None]  # (tags, limit)

ALICE = Client("alice", "app")


class Broker:
    """The supplier in a broker's context; ``announced`` has the changes that it announced."""

    def __init__(self) -> None:
        self.announced: list[tuple[str | None, str | None]] = []
        given = context(name="client-quotas")
        given.answers_changed = lambda principal=None, client_id=None: self.announced.append((principal, client_id))
        self.supplier = ClientQuotas(given)

    def alter(self, entity: Entity, rate: float | None, quota_type: QuotaType = PRODUCE) -> None:
        self.supplier.client_quota_changed(model.ClientQuotaChange(quota_type, model.QuotaEntity(*entity), rate))

    def ask(self, client: Client, quota_type: QuotaType = PRODUCE) -> Quota | None:
        return self.supplier.quota(client, quota_type)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.mark.parametrize("rate", [math.nan, math.inf, 0.0, -1.0])
def test_a_rate_that_throttles_nobody_is_logged(broker: Broker, caplog: pytest.LogCaptureFixture, rate: float) -> None:
    broker.alter(("alice", None), 10.0)
    broker.alter(("alice", None), rate)
    assert broker.ask(ALICE) == Quota(None, Scope.USER)
    assert "alice" in caplog.text
    assert "unlimited" in caplog.text


#: By entity, from the level that Kafka tries first: for whom a change is announced.
CONCERNED: dict[Entity, tuple[str | None, str | None]] = {
    ("alice", "app"): ("alice", "app"), ("alice", DEFAULT): ("alice", None), ("alice", None): ("alice", None),
    (DEFAULT, "app"): (None, "app"), (DEFAULT, DEFAULT): (None, None), (DEFAULT, None): (None, None),
    (None, "app"): (None, "app"), (None, DEFAULT): (None, None),
}  # fmt: skip


@pytest.mark.parametrize(("entity", "concerned"), CONCERNED.items())
def test_a_change_is_announced_for_no_more_clients_than_it_concerns_and_one_without_effect_for_none(
    broker: Broker, entity: Entity, concerned: tuple[str | None, str | None]
) -> None:
    for rate in (None, 10.0, 10.0, 20.0, None, None):
        broker.alter(entity, rate)
    assert broker.announced == [concerned] * 3


def test_many_client_ids_beside_users_with_quotas_of_their_own_take_no_set_for_each_user(broker: Broker) -> None:
    """With 50,000 client-ids and 50,000 users, such sets took more memory than a broker has."""
    for number in range(2000):
        broker.alter((None, f"app-{number}"), 1.0)
        broker.alter((f"user-{number}", "job"), 1.0)
    assert len(broker.supplier.distinct_client_ids("another") or ()) == 2001, "2,000 client-ids and the empty one"
    assert {broker.supplier.distinct_client_ids(f"user-{number}") for number in range(2000)} == {None}


def kafka(quotas: dict[Entity, float], client: Client) -> Answer | None:
    """Kafka's tags and limit for a client; None if no quota matches."""
    user, client_id = client.principal, client.client_id
    both, user_only, client_only = (user, client_id), (user, ""), ("", client_id)
    levels: list[tuple[Entity, tuple[str, str]]] = [
        ((user, client_id), both),
        ((user, DEFAULT), both),
        ((user, None), user_only),
        ((DEFAULT, client_id), both),
        ((DEFAULT, DEFAULT), both),
        ((DEFAULT, None), user_only),
    ]
    matching = [tags for entity, tags in levels if entity in quotas]
    tags = matching[0] if matching else client_only
    limit = limit_of_tags(quotas, *tags)
    return (tags, limit) if matching or limit is not None else None


def limit_of_tags(quotas: dict[Entity, float], user: str, client_id: str) -> float | None:
    order: list[Entity] = []
    if user and client_id:
        order = [(user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT)]
    elif user:
        order = [(user, None), (DEFAULT, None)]
    elif client_id:
        order = [(None, client_id), (None, DEFAULT)]
    return next((quotas[entity] for entity in order if entity in quotas), None)


def as_kafka(quota: Quota | None, client: Client) -> Answer | None:
    if quota is None:
        return None
    tags = {
        ScopeKind.CLIENT: (client.principal, client.client_id),
        ScopeKind.USER: (client.principal, ""),
        ScopeKind.CLIENT_ID: ("", client.client_id),
    }
    return tags[quota.scope.kind], quota.rate


# The names are few, so that quotas match clients, and strange, so that no name is special.
names = st.sampled_from(["", "a", "b", "a:b", ":", "ü Ω*", "<default>"]) | st.text(max_size=3)
entities = st.tuples(names | st.sampled_from([DEFAULT, None]), names | st.sampled_from([DEFAULT, None])).filter(
    lambda entity: entity != (None, None)
)
rates = st.none() | st.integers(1, 5).map(float)
changes = st.lists(st.tuples(st.sampled_from(QUOTA_TYPES[:2]), entities, rates), max_size=12)


@given(changes, st.lists(names, max_size=2))
@example([(PRODUCE, ("a", DEFAULT), 1.0)], [])
@example([(PRODUCE, (DEFAULT, None), 1.0)], [])
@example([(PRODUCE, level, float(rate)) for rate, level in enumerate(CONCERNED, 1)], [])
def test_every_client_is_answered_as_kafka_would(history: list[Change], others: list[str]) -> None:
    broker = Broker()
    model: dict[QuotaType, dict[Entity, float]] = {quota_type: {} for quota_type in QUOTA_TYPES}
    for quota_type, entity, rate in history:
        broker.alter(entity, rate, quota_type)
        if rate is None:
            model[quota_type].pop(entity, None)
        else:
            model[quota_type][entity] = rate
    alike: dict[tuple[str, QuotaType], Quota | None] = {}
    # All pairs of the names in the quotas and of some other names.
    users = {entity[0] for _, entity, _ in history if isinstance(entity[0], str)} | {"", "a", *others}
    ids = {entity[1] for _, entity, _ in history if isinstance(entity[1], str)} | {"", "a", *others}
    for client in (Client(user, client_id) for user in users for client_id in ids):
        distinct = broker.supplier.distinct_client_ids(client.principal)
        for quota_type in QUOTA_TYPES:
            answer = broker.ask(client, quota_type)
            assert as_kafka(answer, client) == kafka(model[quota_type], client)
            if distinct is not None and client.client_id not in distinct:
                assert alike.setdefault((client.principal, quota_type), answer) == answer, "other client-ids are alike"
    for quota_type, quotas in model.items():
        for entity in [*quotas]:
            broker.alter(entity, None, quota_type)
            del quotas[entity]
            assert as_kafka(broker.ask(ALICE), ALICE) == kafka(model[PRODUCE], ALICE), "the next level counts"
    assert broker.supplier._named.by_user == {None: {""}}, "removed quotas take no memory"
    assert broker.supplier.distinct_client_ids("alice") == frozenset(), "alice's quota doesn't depend on her client-id"
