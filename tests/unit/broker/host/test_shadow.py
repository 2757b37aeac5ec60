"""Suppliers in shadow: those in force answer as if the others were not there, and beside it stands what would be."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import EACH
from quotahost.broker.host.new_clients import measured
from quotahost.broker.host.plugins import Guard
from quotahost.model import QUOTA_TYPES, Client, Quota, Scope
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.fakes.shim import FakeShim
from tests.fakes.suppliers import Supplier, supplier
from tests.fakes.suppliers import resolved as answers_of

ALICE = Client("alice", "app")
OTHER = Client("alice", "other")
QUOTAS = st.none() | st.builds(Quota, st.none() | st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([
    Scope.CLIENT, Scope.USER, Scope.CLIENT_ID, Scope.BROKER, Scope.group("g")]))  # fmt: skip
DISTINCT = st.none() | st.sampled_from([frozenset[str](), frozenset({"app"}), frozenset({"other"})])


@dataclass(frozen=True)
class Found:
    """What was found for PRODUCE of one client: scope, rate and supplier in force, and what would be."""

    code: int
    rate: str  # as text, since NaN differs from itself
    source: str
    would: tuple[int, str, str] | None
    distinct: frozenset[str] | int


def resolved(
    suppliers: Mapping[str, Supplier], in_shadow: frozenset[str], combine: str = "first", shim: FakeShim | None = None
) -> list[Found]:
    found: list[Found] = []
    answers = answers_of(suppliers, [ALICE, OTHER], combine, in_shadow, Guard(shim or FakeShim()))
    for row in answers.rows:
        at = row * len(QUOTA_TYPES)
        name = answers.suppliers[answers.sources[at]].partition("\t")[0] if answers.sources[at] >= 0 else ""
        text = answers.shadows[row]
        would = None
        if text and (given := json.loads(text).get(QUOTA_TYPES[0])):
            code, rate, _group, source = given
            would = code, "nan" if rate is None else str(rate), source
        ids = answers.distinct[row]
        distinct = ids if ids < 0 else answers.distinct_ids[ids]
        found.append(Found(answers.codes[at], str(answers.rates[at]), name, would, distinct))
    return found


@given(
    st.lists(st.tuples(QUOTAS, st.booleans(), DISTINCT), max_size=4), st.sampled_from(["first", "most-constraining"])
)
def test_what_is_in_force_is_what_it_were_without_the_suppliers_in_shadow_and_beside_it_what_would_be(
    chain: list[tuple[Quota | None, bool, frozenset[str] | None]], combine: str
) -> None:
    all_of_them = {f"s{n}": supplier(quota, distinct) for n, (quota, _, distinct) in enumerate(chain)}
    in_shadow = frozenset(f"s{n}" for n, (_, shadowed, _) in enumerate(chain) if shadowed)
    without = {name: each for name, each in all_of_them.items() if name not in in_shadow}
    now = resolved(all_of_them, in_shadow, combine)
    alone, enforced = resolved(without, frozenset(), combine), resolved(all_of_them, frozenset(), combine)
    for each, old, new in zip(now, alone, enforced, strict=True):
        assert (each.rate, each.source) == (old.rate, old.source)
        assert each.would == ((new.code, new.rate, new.source) if new.source in in_shadow else None)
        # Who is unlimited is measured in the scope in which it would be limited.
        assert each.code == (each.would[0] if each.would and each.rate == "nan" else old.code)
        # Java asks no more often than without them: it learns as much of the principal's other client-ids.
        assert (each.distinct == EACH) == (old.distinct == EACH)


def test_an_old_supplier_stays_in_force_while_a_new_one_is_tried_before_it() -> None:
    chain = {"new": supplier(Quota(1e6, Scope.USER), ()), "old": supplier(Quota(5e6), ())}
    (found, _) = resolved(chain, frozenset({"new"}))
    assert (found.code, found.rate, found.source) == (Scope.CLIENT.kind.value, "5000000.0", "old")
    assert found.would == (Scope.USER.kind.value, "1000000.0", "new")


def test_client_ids_that_may_differ_by_the_supplier_in_shadow_are_each_asked_about() -> None:
    def by_client(client: Client, _: object) -> Quota:
        return Quota(1.0 if client == ALICE else 2.0)

    chain = {"new": Supplier(by_client), "old": supplier(Quota(5e6), ())}
    found = resolved(chain, frozenset({"new"}))
    assert [each.would and each.would[1] for each in found] == ["1.0", "2.0"]


def test_a_supplier_that_fails_in_shadow_is_counted_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: object) -> NoReturn:
        raise RuntimeError("no")

    shim = FakeShim({})
    with caplog.at_level(logging.CRITICAL):
        found = resolved(
            {"bad": Supplier(fails, fails), "old": supplier(Quota(5e6), ())}, frozenset({"bad"}), shim=shim
        )
    assert [(each.rate, each.source, each.would) for each in found] == [("5000000.0", "old", None)] * 2
    assert set(shim.failed) == {"bad"}


def test_the_host_takes_a_supplier_in_and_out_of_shadow_live() -> None:
    shim = FakeShim({"static.produce": "5M"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "7000000.0")
    shim.arrive(ALICE)
    rates: list[float | None] = []
    for shadow in ("supplier.client-quotas", "supplier.client-quotas,supplier.static", ""):
        shim.script.append(lambda: rates.append(shim.rate(*ALICE)))
        shim.reconfigure(shadow=shadow)
        shim.idle()
    Host(shim, lambda: 0.0).run()
    assert [*rates, shim.rate(*ALICE)] == [7e6, 5e6, None, 7e6]
    assert f"{PREFIX}shadow" in shim.live


def test_while_a_supplier_is_in_shadow_the_unlimited_are_measured_one_by_one() -> None:
    assert measured(Settings.from_properties({}), ()) == set()
    assert measured(Settings.from_properties({f"{PREFIX}shadow": "supplier.static"}), ()) == set(QUOTA_TYPES)
