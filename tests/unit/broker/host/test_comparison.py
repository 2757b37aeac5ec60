"""What rules in shadow would do: of what Kafka measures, whom each would hold back, and by how much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.host.messages import GROUP, shadow_text
from quotahost.broker.host.shadow import Comparison, StandIn, compare, limit
from quotahost.model import QuotaType, ScopeKind
from tests.fakes.holders import FETCH, PRODUCE, REQUEST, dump, holder

TRIED = "supplier.tried"
CLIENT, USER, ALL = ScopeKind.CLIENT.value, ScopeKind.USER.value, ScopeKind.BROKER.value
A_KEY = (PRODUCE, ("alice", "a"))


def compared(answer: dict[str, Any], stand_in: StandIn = lambda *_: None) -> Comparison:
    return compare(lambda what, *_: answer if what == "holders" else answer[what], stand_in)


def would(code: int, rate: float) -> str:
    """What the supplier "tried" would give for every type."""
    return shadow_text([(code, rate, 0)] * 4, ["gold"], ["tried"])


def test_the_old_supplier_is_in_force_and_the_new_one_is_measured_in_its_own_scope() -> None:
    rows = [holder("alice", each, base=5_000, rate=rate, shadow=would(USER, 1_000))
            for each, rate in (("a", 700), ("b", 800))]  # fmt: skip
    found = compared(dump(*rows, shadow=[TRIED]))
    count = found.counts[TRIED]
    assert (count.over, count.unmeasured, count.beyond) == (1, 0, 500)
    assert found.rates == {(PRODUCE, ("alice", "")): 1_500}
    assert {key: rule for key, (rule, _) in found.held.items()} == {A_KEY: TRIED, (PRODUCE, ("alice", "b")): TRIED}


def test_who_is_below_the_limit_is_not_counted() -> None:
    rows = [holder("alice", "a", type=kind, rate=rate, shadow=would(CLIENT, 1_000))
            for kind, rate in ((PRODUCE, 900), (FETCH, 1_200))]  # fmt: skip
    found = compared(dump(*rows, shadow=[TRIED]))
    assert (found.counts[TRIED].over, found.counts[TRIED].beyond) == (1, 200)
    assert found.rates[A_KEY] == 900
    row = holder("alice", "a", type=REQUEST, rate=90, shadow=would(CLIENT, 50))
    count = compared(dump(row, shadow=[TRIED])).counts[TRIED]
    assert (count.over, count.beyond) == (1, 0), "of requests no bytes are counted"


def test_a_scope_that_kafka_measures_together_with_others_cannot_be_told() -> None:
    rows = [
        # All client-ids of alice share a quota, and each would have one of its own.
        holder("alice", "a", tags=("alice", ""), whole=True, base=5_000, rate=700, shadow=would(CLIENT, 1)),
        # All clients of the broker share one, and bob would have one of his own, but carol none.
        holder("bob", "a", tags=("<broker>", ""), whole=True, base=5_000, rate=700, shadow=would(USER, 1)),
        holder("carol", "a", tags=("<broker>", ""), whole=True, base=5_000, rate=700),
    ]
    for some in (rows, rows[::-1]):
        found = compared(dump(*some, shadow=[TRIED]))
        assert (found.counts[TRIED].over, found.counts[TRIED].unmeasured) == (0, 2)
        assert found.rates[PRODUCE, ("bob", "")] is None
        assert found.held == {}


def test_a_scope_of_which_a_part_cannot_be_told_cannot_be_told() -> None:
    rows = [
        holder("alice", "a", rate=700, shadow=would(USER, 1)),
        holder("alice", "b", tags=("", "b"), rate=700, shadow=would(USER, 1)),
        holder("bob", "b", tags=("", "b"), rate=700),
    ]
    found = compared(dump(*rows, shadow=[TRIED]))
    assert (found.counts[TRIED].over, found.counts[TRIED].unmeasured) == (0, 1)


def test_clients_of_a_group_would_share_what_they_have_apart() -> None:
    rows = [holder(user, "a", tags=(user, ""), whole=True, base=5_000, rate=600, shadow=would(GROUP, 1_000))
            for user in ("alice", "bob")]  # fmt: skip
    found = compared(dump(*rows, shadow=[TRIED]))
    assert (found.counts[TRIED].over, found.counts[TRIED].beyond) == (1, 200)
    assert found.rates == {(PRODUCE, ("<group gold>", "")): 1_200}


def test_what_several_share_is_measured_once() -> None:
    rows = [holder(user, "a", tags=("<broker>", ""), rate=600, shadow=would(ALL, 500)) for user in ("alice", "bob")]
    assert compared(dump(*rows, shadow=[TRIED])).counts[TRIED].beyond == 100


@pytest.mark.parametrize(
    ("changes", "beyond"),
    [
        ({}, 400),
        ({"limit_factor": 0.8}, 100),  # the tap is still on its way
        ({"affected_topics": 3}, 0),  # the factor is for others
        ({"factor_types": ["FETCH"]}, 0),
        ({"shadow": [TRIED, "factor"], "limit_factor": 1.0}, 0),  # each rule as if it alone were in force
    ],
)
def test_the_factor_in_force_lowers_what_the_supplier_would_give(changes: dict[str, Any], beyond: float) -> None:
    row = holder("alice", "a", rate=900, shadow=would(CLIENT, 1_000))
    found = compared(dump(row, **({"shadow": [TRIED], "factor": 0.5, "limit_factor": 0.5} | changes)))
    assert sum(count.beyond for rule, count in found.counts.items() if rule == TRIED) == pytest.approx(beyond)


TOGETHER: dict[str, Any] = {"tags": ("<broker>", ""), "base": 1_000, "rate": 700}
QUOTA: dict[str, Any] = {"base": 1_000, "rate": 700}


@pytest.mark.parametrize(
    ("rows", "changes", "over", "beyond"),
    [
        # What the quota lets through beyond the factor, and nothing of a factor of 1.
        ([holder("alice", "a", base=1_000, rate=1_100), holder("bob", "b", base=1_000, rate=400)], {}, 1, 500),
        ([holder("alice", "a", base=1_000, rate=1_100)], {"factor": 1.0}, 0, 0),
        # The factor multiplies what the unlimited used when it fell.
        ([holder("alice", "a", rate=900, stand_in=1_000), holder("bob", "a", rate=900)], {}, 2, 400 + 100),
        # In a PAUSE that the fence would hold everything is beyond, but for those who pass.
        ([holder("admin", "a", **QUOTA, passes=True), holder("admin", "b", **TOGETHER, passes=True),
          holder("alice", "b", **TOGETHER)], {"factor": 0.0, "closed": True}, 1, 700),
        # Without a fence a PAUSE lets the floor through, and a PAUSE of some topics turns back requests, not clients.
        ([holder("alice", "a", **QUOTA)], {"factor": 0.0}, 1, 690),
        ([holder("alice", "a", **QUOTA, marked=True)], {"factor": 0.0, "closed": True, "affected_topics": 1}, 1, 690),
        # A factor for some topics concerns those who write there; a scope of which some do is left as it is.
        ([holder("alice", "a", **QUOTA, marked=True), holder("bob", "a", **QUOTA),
          holder("carol", "a", **TOGETHER, marked=True), holder("dave", "a", **TOGETHER)],
         {"affected_topics": 1}, 1, 200),
    ],
)  # fmt: skip
def test_the_factor_in_shadow_counts_what_goes_beyond_it(
    rows: list[Any], changes: dict[str, Any], over: int, beyond: float
) -> None:
    found = compared(dump(*rows, shadow=["factor"], **({"factor": 0.5} | changes)), lambda *_: 1_600)
    count = found.counts.get("factor")
    assert ((count.over, count.beyond) if count else (0, 0)) == (over, beyond)


SLOWED = holder("alice", "a", base=1_000, rate=900)
ADMIN = holder("admin", "a", tags=("<exempt>", ""), rate=900, exempt=True, supplier="exempt.principals")
READS = holder("alice", "a", type=FETCH, rate=900, shadow=would(CLIENT, 1_000))


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (SLOWED, {"shadow": [TRIED]}),  # a factor in force holds nobody in shadow
        (SLOWED, {"shadow": []}),
        (ADMIN, {"shadow": ["factor"]}),
        (ADMIN, {"shadow": ["factor"], "enforced": False}),
        (READS, {"shadow": [TRIED, "factor"], "factor_types": ["FETCH"]}),  # nor does it lower what a supplier gives
        (READS, {"shadow": []}),
        (holder("alice", "a", type=FETCH, base=1_000, rate=900), {"shadow": ["factor"]}),  # it acts on PRODUCE alone
    ],
)
def test_what_is_not_in_shadow_and_exempt_clients_are_not_counted(row: list[Any], changes: dict[str, Any]) -> None:
    stand_in = 100 if row is ADMIN else None
    assert compared(dump(row, factor=0.5, **changes), lambda *_: stand_in).counts == {}


def test_with_mode_shadow_the_quotas_of_all_suppliers_are_counted_and_the_factors_part_beside_them() -> None:
    rows = [
        holder("alice", "a", base=1_000, rate=1_600, supplier="static\toverrides=2000.0"),
        holder("new", "a", tags=("<newcomers>", ""), base=100, rate=1_600, supplier="static", newcomer=True),
    ]
    found = compared(dump(*rows, shadow=["factor", "topics"], enforced=False, factor=0.5))
    assert (found.counts["supplier.static"].over, found.counts["supplier.static"].beyond) == (1, 600)
    assert (found.counts["factor"].over, found.counts["factor"].beyond) == (2, 500 + 50)


RATES = st.none() | st.floats(0, 1e9)


@given(RATES, st.floats(0, 1), st.floats(1, 1e6), RATES)
def test_a_limit_is_the_quotas_part_and_no_lower_than_the_floor_or_the_quota(
    base: float | None, factor: float, floor: float, stand_in: float | None
) -> None:
    found = limit(base, factor, floor, stand_in)
    if factor == 1:
        assert found == base
    elif found is None:
        assert base is None
        assert stand_in is None
        assert factor > 0
    else:
        whole = base if base is not None else stand_in if stand_in is not None else floor
        assert min(floor, whole) <= found <= max(floor, whole)


def test_names_that_kafka_writes_otherwise_into_its_tags_are_found_again() -> None:
    row = holder("CN=ä~", "a b", tags=("CN%3D%C3%A4%7E", "a b"), rate=900, shadow=would(CLIENT, 500))
    assert list(compared(dump(row, shadow=[TRIED])).rates) == [(QuotaType.PRODUCE, ("CN%3D%C3%A4%7E", "a b"))]
