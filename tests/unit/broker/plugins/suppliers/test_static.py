"""The suppliers ``static``, ``overrides`` (KIP-13) and ``controller-mutation`` (KIP-599), by their properties."""

import re
from typing import Any

import pytest

from quotahost.api import Role
from quotahost.broker.discovery import plugin_settings
from quotahost.broker.plugins.suppliers.static import ControllerMutation, Overrides, Static
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.testing.checks import check_supplier
from tests.fakes.plugin_context import context

PRODUCE, FETCH, MUTATION = QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.CONTROLLER_MUTATION
ENTRIES = {"overrides": Overrides, "controller-mutation": ControllerMutation}
KIP_13 = {
    "plugin.overrides.quota.producer.default": "2M",
    "plugin.overrides.quota.consumer.default": "2M",
    "plugin.overrides.quota.producer.override": "clientA:4M,clientB:10M",
    "plugin.overrides.quota.consumer.override": "clientC:3M,clientD:5M",
}
KIP_599 = {
    "plugin.controller-mutation.default": "5",
    "plugin.controller-mutation.users": "alice:10,root:unlimited",
    "plugin.controller-mutation.client-ids": "terraform:20",
}


def settings(given: dict[str, str], supplier: str) -> Settings:
    given = {"supplier": supplier, **given}
    return Settings.from_properties({PREFIX + name: text for name, text in given.items()})


def built(given: dict[str, str], supplier: str) -> Any:
    entry = ENTRIES[supplier]
    made = context(name=supplier)
    made.settings = settings(given, supplier)
    made.section = plugin_settings(Role.SUPPLIER, supplier, made.settings, entry)
    return entry(made)


def of(supplier: Any, client_id: str, user: str = "ANONYMOUS") -> dict[QuotaType, Quota]:
    answers = {kind: supplier.quota(Client(user, client_id), kind) for kind in QUOTA_TYPES}
    return {kind: quota for kind, quota in answers.items() if quota is not None}


@pytest.mark.proves("kip-13.static-config")
def test_kip_13s_own_names_and_values_give_each_client_id_its_override_or_the_default() -> None:
    supplier = built(KIP_13, "overrides")
    default = Quota(2e6, Scope.CLIENT_ID)
    assert of(supplier, "clientA") == {PRODUCE: Quota(4e6, Scope.CLIENT_ID), FETCH: default}
    assert of(supplier, "clientD") == {PRODUCE: default, FETCH: Quota(5e6, Scope.CLIENT_ID)}
    for client_id, user in (("other", "ANONYMOUS"), ("", "alice"), ("", "bob")):
        assert of(supplier, client_id, user) == {PRODUCE: default, FETCH: default}


@pytest.mark.proves("kip-13.default-quota")
def test_without_a_default_others_are_left_to_the_next_supplier() -> None:
    supplier = built({"plugin.overrides.quota.producer.override": "clientA:4M"}, "overrides")
    assert of(supplier, "clientA") == {PRODUCE: Quota(4e6, Scope.CLIENT_ID)}
    assert of(supplier, "other") == {}


def test_an_unlimited_default_or_override_is_an_answer() -> None:
    given = {"quota.producer.default": "unlimited", "quota.consumer.override": "a:unlimited"}
    supplier = built({f"plugin.overrides.{k}": v for k, v in given.items()}, "overrides")
    assert of(supplier, "a") == dict.fromkeys((PRODUCE, FETCH), Quota(None, Scope.CLIENT_ID))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("quota.producer.override", "clientA:4M,b:fast", "'b:fast', whose rate is not a number; write"),
        ("quota.consumer.override", "a:1,a:2", "'a' twice; remove one"),
        ("quota.producer.default", "much", "is not a number; write a plain number"),
        ("quota.producer.overide", "a:1", "did you mean client.quota.callback.plugin.overrides.quota.producer.o"),
        ("producer-override", "a:1", "unknown property"),
    ],
)
def test_an_error_names_the_property_the_entry_and_the_remedy(name: str, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)) as refused:
        built({f"plugin.overrides.{name}": text}, "overrides")
    assert refused.value.problems[0].property == f"{PREFIX}plugin.overrides.{name}"


def test_a_users_rate_comes_before_a_client_ids_and_both_before_the_default() -> None:
    supplier = built(KIP_599, "controller-mutation")
    assert of(supplier, "terraform", "alice") == {MUTATION: Quota(10, Scope.USER)}
    assert of(supplier, "terraform", "root") == {MUTATION: Quota(None, Scope.USER)}
    assert of(supplier, "terraform", "bob") == {MUTATION: Quota(20, Scope.CLIENT_ID)}
    assert of(supplier, "app", "bob") == {MUTATION: Quota(5, Scope.USER)}
    by_client_id = built(KIP_599 | {"plugin.controller-mutation.scope": "client-id"}, "controller-mutation")
    assert of(by_client_id, "app") == {MUTATION: Quota(5, Scope.CLIENT_ID)}
    without = built({"plugin.controller-mutation.users": "alice:5"}, "controller-mutation")
    assert of(without, "app", "bob") == {}, "those not listed are left to the next supplier"


@pytest.mark.parametrize(
    ("entry", "given", "changed"),
    [
        (Overrides, KIP_13, {"plugin.overrides.quota.producer.override": "clientA:1M"}),
        (ControllerMutation, KIP_599, {"plugin.controller-mutation.users": "alice:1"}),
    ],
)
def test_they_keep_the_contract_of_suppliers(entry: Any, given: dict[str, str], changed: dict[str, str]) -> None:
    clients = [Client("alice", "clientA"), Client("bob", "terraform")]
    check_supplier(entry, given, clients=clients, reconfigured=changed)


# ---- static ----


def static(**rates: str) -> Static:
    return Static(context(None, **{f"static__{name}": text for name, text in rates.items()}))


@pytest.mark.proves("proposal-035.static")
def test_every_client_gets_the_rate_of_the_type_or_is_left_to_the_next_supplier() -> None:
    whole = static(produce="1M", fetch="2M", request="50", controller_mutation="5.5")
    expected = dict(zip(QUOTA_TYPES, (Quota(rate, Scope.BROKER) for rate in (1e6, 2e6, 50.0, 5.5)), strict=True))
    assert of(whole, "app", "alice") == of(whole, "", "CN=a,O=b") == expected
    assert of(static(fetch="2M"), "app") == {FETCH: Quota(2e6, Scope.BROKER)}


@pytest.mark.parametrize(
    ("name", "scope"),
    [("client", Scope.CLIENT), ("user", Scope.USER), ("client-id", Scope.CLIENT_ID), ("broker", Scope.BROKER)],
)
def test_the_scope_is_that_of_the_property(name: str, scope: Scope) -> None:
    supplier = static(produce="1M", request="10", scope=name)
    assert of(supplier, "app") == {PRODUCE: Quota(1e6, scope), QuotaType.REQUEST: Quota(10, scope)}
