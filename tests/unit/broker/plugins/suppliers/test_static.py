"""The supplier ``static``: one rate for each quota type, shared as ``static.scope`` names it."""

import pytest

from quotahost.broker.plugins.suppliers.static import Static
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope
from tests.fakes.plugin_context import context

CLIENTS = [Client("alice", "app"), Client("", ""), Client("CN=a,O=b", "ü:1"), Client("<default>", "*")]


def static(**rates: str) -> Static:
    return Static(context(None, **{f"static__{name}": text for name, text in rates.items()}))


@pytest.mark.proves("proposal-035.static")
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_gets_the_rate_of_the_type_or_is_left_to_the_next_supplier(client: Client) -> None:
    whole = static(produce="1M", fetch="2M", request="50", controller_mutation="5.5")
    expected = [Quota(rate, Scope.BROKER) for rate in (1e6, 2e6, 50.0, 5.5)]
    assert [whole.quota(client, quota_type) for quota_type in QUOTA_TYPES] == expected
    only_fetch = [static(fetch="2M").quota(client, quota_type) for quota_type in QUOTA_TYPES]
    assert only_fetch == [None, Quota(2e6, Scope.BROKER), None, None]


@pytest.mark.parametrize(
    ("name", "scope"),
    [("client", Scope.CLIENT), ("user", Scope.USER), ("client-id", Scope.CLIENT_ID), ("broker", Scope.BROKER)],
)
def test_the_scope_is_that_of_the_property(name: str, scope: Scope) -> None:
    supplier = static(produce="1M", request="10", scope=name)
    assert supplier.quota(CLIENTS[0], QuotaType.PRODUCE) == Quota(1e6, scope)
    assert supplier.quota(CLIENTS[0], QuotaType.REQUEST) == Quota(10, scope)
