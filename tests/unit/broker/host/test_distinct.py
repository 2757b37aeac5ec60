"""What one answer tells about a principal's other client-ids, and for which types the unlimited are measured."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.api import ClientIdAware, Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import ALONE, EACH, EXEMPT
from quotahost.broker.host.new_clients import measured
from quotahost.broker.host.plugins import Guard
from quotahost.broker.plugins.suppliers.client_quotas import ClientQuotas
from quotahost.broker.plugins.suppliers.controller_mutation import ControllerMutation, ControllerMutationSettings
from quotahost.broker.plugins.suppliers.overrides import Overrides, OverridesSettings
from quotahost.broker.plugins.suppliers.static import Static
from quotahost.broker.plugins.tasks.publish_usage import PublishUsage
from quotahost.broker.plugins.tasks.publish_volumes import PublishVolumes
from quotahost.model import QUOTA_TYPES, Client, ClientQuotaChange, Quota, QuotaEntity, QuotaType
from quotahost.model.quotas import DEFAULT
from tests.fakes.plugin_context import context, settings
from tests.fakes.shim import FakeShim, node_of
from tests.fakes.suppliers import Supplier, resolved, supplier

NAMES = st.sampled_from(["", "a", "b", "c", "alice"])
ALICE = Client("alice", "app")


def told(suppliers: list[Supplier], combine: str = "first", shim: FakeShim | None = None) -> object:
    """What the answer for alice/app tells of her other client-ids."""
    named = {f"s{n}": each for n, each in enumerate(suppliers)}
    found = resolved(named, [ALICE], combine, guard=Guard(shim or FakeShim()))
    distinct = found.distinct[found.rows[0]]
    return distinct if distinct < 0 else found.distinct_ids[distinct]


def test_all_suppliers_that_were_asked_decide_together() -> None:
    none, some, other = supplier(None, {"a"}), supplier(Quota(1.0), {"b"}), supplier(Quota(2.0), {"c"})
    assert told([none, some, other]) == {"a", "b"}
    assert told([none, some, other], "most-constraining") == {"a", "b", "c"}
    assert told([supplier(None, ()), supplier(Quota(1.0), [])]) == frozenset()


def test_one_that_does_not_know_decides_alone() -> None:
    knows = supplier(Quota(1.0), {"a"})
    assert told([supplier(None), knows]) == EACH
    assert told([knows, supplier(None)]) == {"a"}, "it was not asked"
    assert told([knows, supplier(None)], "most-constraining") == EACH


def test_the_same_set_stays_one_object_through_a_batch() -> None:
    ids = frozenset({"a", "b"})
    named = {"s": supplier(Quota(1.0), ids), "t": supplier(None, frozenset())}
    found = resolved(named, [Client(f"u{n}", "x") for n in range(100)])
    assert found.distinct_ids == [ids]
    assert found.distinct_ids[0] is ids
    assert (len(found.codes), set(found.rows)) == (len(QUOTA_TYPES), {0})


@pytest.mark.parametrize("wrong", ["abc", 5, [1], {"a": 1, 2: 3}])
def test_an_answer_of_another_type_is_counted_and_tells_nothing(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim({})
    with caplog.at_level(logging.CRITICAL):
        assert told([supplier(Quota(1.0), wrong)], shim=shim) == EACH
    assert shim.failed == ["s0"]


def test_the_exempt_are_so_by_principal_as_a_whole_and_by_client_id_alone() -> None:
    node = node_of(4, "ANONYMOUS", "broker")
    shim = FakeShim({"static.produce": "2M", "static.excluded.principal.name.list": "User:root"}, node)
    shim.arrive(("root", "x"), ("broker", "y"), ("ANONYMOUS", "4"), ("ANONYMOUS", "app"))
    Host(shim, lambda: 0.0).run()
    assert {tuple(client): distinct for client, distinct in shim.distinct.items()} == {
        ("root", "x"): frozenset(), ("broker", "y"): frozenset(), ("ANONYMOUS", "4"): ALONE,
        ("ANONYMOUS", "app"): frozenset(),
    }  # fmt: skip
    assert shim.code("ANONYMOUS", "4") == EXEMPT


# ---- the built-in suppliers --------------------------------------------------------------------------


def expect_alike(plugin: ClientIdAware, asked: Any, principals: Collection[str], client_ids: Collection[str]) -> None:
    """Client-ids that are not distinct have equal quotas."""
    for principal in principals:
        distinct = plugin.distinct_client_ids(principal)
        if distinct is None:
            continue
        others = [client_id for client_id in client_ids if client_id not in distinct]
        for quota_type in QUOTA_TYPES:
            quotas = [asked(Client(principal, client_id), quota_type) for client_id in others]
            assert all(quota == quotas[0] for quota in quotas), (principal, distinct, quotas)


IDS = ("", "a", "b", "c", "alice", "never named", "another")
USERS = ("alice", "bob", "", "a")


@given(st.lists(st.tuples(
    st.sampled_from(QUOTA_TYPES), st.sampled_from(["alice", "a", DEFAULT, None]),
    st.sampled_from(["", "a", "b", DEFAULT, None]), st.none() | st.sampled_from([1.0, 2.0])), max_size=12))  # fmt: skip
def test_kafkas_client_quotas_name_every_client_id_that_differs(changes: list[Any]) -> None:
    plugin = ClientQuotas(context())
    for quota_type, user, client_id, rate in changes:
        if user is not None or client_id is not None:
            plugin.client_quota_changed(ClientQuotaChange(quota_type, QuotaEntity(user, client_id), rate))
            expect_alike(plugin, plugin.quota, USERS, IDS)
            assert plugin.distinct_client_ids("bob") is plugin.distinct_client_ids("bob")
    if not any(plugin._quotas.values()):
        assert plugin.distinct_client_ids("alice") == frozenset()


RATES = st.dictionaries(NAMES.filter(bool), st.none() | st.sampled_from([1.0, 2.0]), max_size=3)


@given(RATES, RATES, st.none() | st.just(5.0), st.sampled_from(["user", "client", "client-id", "broker"]))
def test_controller_mutation_names_them(users: Any, client_ids: Any, default: float | None, scope: Any) -> None:
    section = ControllerMutationSettings.model_construct(
        users=users, client_ids=client_ids, default=default, scope=scope
    )
    plugin = ControllerMutation(context(own=section))
    expect_alike(plugin, plugin.quota, USERS, IDS)
    assert plugin.distinct_client_ids("nobody") == frozenset(client_ids)


@given(RATES, RATES)
def test_overrides_names_them(producers: Any, consumers: Any) -> None:
    own = OverridesSettings.model_construct(
        producer_default=3.0, consumer_default=None, producer_override=producers, consumer_override=consumers
    )
    plugin = Overrides(context(own=own))
    expect_alike(plugin, plugin.quota, USERS, IDS)


def test_static_has_one_quota_for_all() -> None:
    plugin = Static(context(static__produce="1M"))
    expect_alike(plugin, plugin.quota, USERS, IDS)
    assert plugin.distinct_client_ids("alice") == frozenset()


# ---- who is measured -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "types"),
    [
        ({}, set()),
        ({"factor.source": "fixed"}, {QuotaType.PRODUCE}),
        ({"factor.source": "fixed", "factor.quota.types": "PRODUCE,REQUEST"}, {QuotaType.PRODUCE, QuotaType.REQUEST}),
        ({"fallback.action": "PAUSE"}, {QuotaType.PRODUCE}),
    ],
)
def test_types_are_measured_where_a_factor_or_a_plugin_needs_it(properties: dict[str, str], types: set[Any]) -> None:
    shim = FakeShim(properties)
    shim.idle()
    Host(shim, lambda: 0.0).run()
    assert shim.refused is None
    assert set(shim.measured) == types


def test_they_are_measured_where_a_plugin_reads_the_usage() -> None:
    plugins = [LoadedPlugin(Role.TASK, object.__new__(each), context()) for each in (PublishUsage, PublishVolumes)]
    assert measured(settings(), plugins) == {QuotaType.PRODUCE, QuotaType.FETCH}
    assert measured(settings(), plugins[1:]) == frozenset()
