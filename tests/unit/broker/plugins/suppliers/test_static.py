"""The supplier ``static``: one rate for each quota type, shared as ``static.scope`` names it."""

import logging
import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quotahost.api import Context, QuotaSupplier
from quotahost.broker.plugins.suppliers.static import Static
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope
from quotahost.testing.broker import FakeBroker

NODE = FakeBroker()
CLIENTS = [Client("alice", "app"), Client("", ""), Client("CN=a,O=b", "ü:1"), Client("<default>", "*")]


def static(
    produce: float | None = None,
    fetch: float | None = None,
    request: float | None = None,
    controller_mutation: float | None = None,
    scope: str = "client",
) -> Static:
    properties = SimpleNamespace(
        produce=produce, fetch=fetch, request=request, controller_mutation=controller_mutation, scope=scope
    )
    host = SimpleNamespace(static=properties)
    log = logging.getLogger("test")
    return Static(Context("static", None, cast("Any", host), 1, log, broker=NODE, metrics=NODE))


def test_it_is_a_supplier() -> None:
    supplier: QuotaSupplier = static()
    assert isinstance(supplier, QuotaSupplier)


@pytest.mark.proves("proposal-035.static")
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_gets_the_rate_of_the_type(client: Client) -> None:
    supplier = static(produce=1e6, fetch=2e6, request=50.0, controller_mutation=5.5)

    rates = {quota_type: supplier.quota(client, quota_type) for quota_type in QUOTA_TYPES}

    assert rates == {
        QuotaType.PRODUCE: Quota(1e6),
        QuotaType.FETCH: Quota(2e6),
        QuotaType.REQUEST: Quota(50.0),
        QuotaType.CONTROLLER_MUTATION: Quota(5.5),
    }


def test_a_type_without_a_rate_is_left_to_the_next_supplier() -> None:
    supplier = static(fetch=2e6)

    answers = [supplier.quota(CLIENTS[0], quota_type) for quota_type in QUOTA_TYPES]

    assert answers == [None, Quota(2e6), None, None]


@pytest.mark.parametrize(
    ("name", "scope"),
    [("client", Scope.CLIENT), ("user", Scope.USER), ("client-id", Scope.CLIENT_ID), ("broker", Scope.BROKER)],
)
def test_the_scope_is_that_of_the_property(name: str, scope: Scope) -> None:
    supplier = static(produce=1e6, request=10, scope=name)

    assert supplier.quota(CLIENTS[0], QuotaType.PRODUCE) == Quota(1e6, scope)
    assert supplier.quota(CLIENTS[0], QuotaType.REQUEST) == Quota(10, scope)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_by_which_kafka_does_not_throttle_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="finite and above 0"):
        static(produce=rate)
