"""``supplier.combine``: the first answer, or the smallest rate of all."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.host.exemptions import Exemptions
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import NEWCOMER
from quotahost.broker.host.resolver import Resolver, Supplier
from quotahost.cli.explain.answer import parse, quota_facts
from quotahost.model import Client, Quota, Scope
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, SettingsError
from tests.fakes import dump
from tests.fakes.shim import FakeShim
from tests.unit.cli.explain.test_answer import answer

ALICE = Client("alice", "app")
QUOTAS = st.none() | st.builds(Quota, st.none() | st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([
    Scope.CLIENT, Scope.USER, Scope.CLIENT_ID, Scope.BROKER, Scope.group("g")]))  # fmt: skip


def resolved(answers: list[Quota | None], combine: str = "most-constraining") -> tuple[int, float, str]:
    """Code, rate and source for PRODUCE, of suppliers s0, s1, ... that give these answers."""
    suppliers = {f"s{n}": (lambda _c, _t, a=answer: a) for n, answer in enumerate(answers)}
    return one(suppliers, combine)


def one(asks: dict[str, Any], combine: str) -> tuple[int, float, str]:
    exemptions = Exemptions(Settings.from_properties({}), {})
    suppliers = {name: Supplier(ask) for name, ask in asks.items()}
    found = Resolver(suppliers, exemptions, Guard(FakeShim({})), combine).answers([ALICE])
    source = found.sources[0]
    return found.codes[0], found.rates[0], "" if source < 0 else found.suppliers[source]


def test_the_smallest_rate_gives_the_quota_with_its_scope() -> None:
    code, rate, _ = resolved([Quota(5e6, Scope.USER), Quota(2e6, Scope.BROKER), Quota(3e6)])
    assert (code, rate) == (Scope.BROKER.kind.value, 2e6)


def test_first_is_the_first_answer_whatever_follows() -> None:
    assert resolved([None, Quota(5e6), Quota(2e6)], "first")[1:] == (5e6, "s1")


def test_unlimited_is_the_least_constraining_and_none_is_no_opinion() -> None:
    assert resolved([Quota(None), None, Quota(1e12, Scope.USER)])[:2] == (Scope.USER.kind.value, 1e12)
    code, rate, source = resolved([None, Quota(None, Scope.USER)])
    assert (code, rate != rate, source) == (Scope.USER.kind.value, True, "s1")
    assert resolved([None, None])[2] == ""


def test_of_equal_rates_the_first_one_holds() -> None:
    assert resolved([Quota(2e6, Scope.USER), Quota(2e6, Scope.BROKER)])[0] == Scope.USER.kind.value


@given(st.lists(QUOTAS, max_size=4))
def test_no_supplier_would_constrain_more_and_a_lone_answer_is_the_same_either_way(answers: list[Quota | None]) -> None:
    _, rate, source = resolved(answers)
    rates = [quota.rate for quota in answers if quota and quota.rate is not None]
    assert rate == min(rates) if rates else rate != rate
    if len([quota for quota in answers if quota]) < 2:
        first = resolved(answers, "first")
        assert (source, repr(rate)) == (first[2], repr(first[1]))


def test_a_supplier_that_fails_leaves_the_client_as_it_is_as_nobody_knows_what_it_would_have_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no")

    with caplog.at_level(logging.CRITICAL):
        found = one({"good": lambda *_: Quota(1.0), "bad": fails}, "most-constraining")
    assert (found[0], found[2]) == (NEWCOMER, "bad")


@pytest.mark.parametrize(("written", "understood"), [("FIRST", "first"), ("most_constraining", "most-constraining")])
def test_the_property_takes_its_two_values_in_any_case(written: str, understood: str) -> None:
    given = Settings.from_properties({f"{PREFIX}supplier.combine": written})
    assert given.supplier_combine == understood


def test_another_value_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"supplier\.combine=most.*did you mean most-constraining"):
        Settings.from_properties({f"{PREFIX}supplier.combine": "most-constraint"})


def test_explain_names_the_supplier_whose_rate_holds_and_what_the_others_would_have_given() -> None:
    source = resolved([Quota(5e6), Quota(2e6), Quota(None)])[2]
    dumped = dump.client(dump.row(base=2e6, limit=2e6, supplier=source))
    (quota,) = parse(dumped, ALICE).quotas
    assert quota.supplier == "s1"
    facts = dict(quota_facts(answer(quota), quota))
    assert facts["from"] == (
        "supplier s1, the most constraining (s0 would give 5,000,000 bytes/s (5M); s2 would give unlimited)"
    )


def test_the_host_combines_as_the_property_says_and_follows_a_live_change() -> None:
    shim = FakeShim({"static.produce": "5M", "supplier.combine": "most-constraining"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "7000000.0")
    shim.arrive(ALICE)
    rates = []
    shim.script.append(lambda: rates.append(shim.rate(*ALICE)))
    shim.reconfigure(**{"supplier.combine": "first"})
    shim.idle()
    Host(shim, lambda: 0.0).run()
    assert [*rates, shim.rate(*ALICE)] == [5e6, 7e6]
    assert f"{PREFIX}supplier.combine" in shim.live


def test_a_supplier_may_be_named_like_a_reason_for_an_exemption() -> None:
    suppliers = {"broker": lambda *_: Quota(2.0), "plugin": lambda *_: Quota(1.0)}
    assert one(suppliers, "most-constraining")[1:] == (1.0, "plugin\tbroker=2.0")
