"""The records of budgets: which are read, which refused, and that the quotas beside them are left alone."""

import json
from typing import Any

import pytest

from quotahost.model.budgets import Budget
from quotahost.records.budgets import MAX_BUDGETS, MAX_PATTERNS, LatestBudgets, encode, key_of
from quotahost.records.codec import Refused
from quotahost.records.quotas import ClusterQuota, Entity, LatestQuotas
from quotahost.records.quotas import encode as encode_quota
from quotahost.records.quotas import key_of as key_of_quota

ORDERS = Budget("orders.*", ("orders.*", "payments"), 500 * 10**9, replicas=True)
GOOD = {"version": 1, "topics": ["t"], "bytes": 5}


def test_a_budget_reads_as_it_was_written_and_goes_with_a_tombstone() -> None:
    latest = LatestBudgets()
    latest.take(key_of(ORDERS.name), encode(ORDERS))
    assert latest.by_name == {"orders.*": ORDERS}
    latest.take(key_of(ORDERS.name), None)
    assert latest.by_name == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *((each, "schema") for each in (
            {"topics": []}, {"topics": ["t"] * (MAX_PATTERNS + 1)}, {"topics": ["a*b"]}, {"topics": ["t\n"]},
            {"topics": "t"}, {"bytes": -1}, {"bytes": 2**63}, {"bytes": "5"}, {"bytes": True}, {"of": "followers"})),
        ({"version": 2}, "version"),
        ({"more": "x" * 100_000}, "size"),
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_refused_and_what_was_there_stays(change: dict[str, Any], reason: str) -> None:
    latest = LatestBudgets()
    latest.take(b"budgets/b", json.dumps(GOOD).encode())
    with pytest.raises(Refused) as refused:
        latest.take(b"budgets/b", json.dumps(GOOD | change).encode())
    assert refused.value.reason == reason
    assert latest.by_name == {"b": Budget("b", ("t",), 5)}
    again = LatestBudgets(latest.by_name)
    with pytest.raises(Refused):
        again.take(b"budgets/b", json.dumps(GOOD | change).encode())
    assert again.by_name == latest.by_name, "also when the topic is read again"


@pytest.mark.parametrize("name", [b"", b"a b", b"a>", b"<a", b"a\n", b"\xff", b"a" * 65])
def test_a_name_that_could_not_stand_in_kafkas_tags_is_refused(name: bytes) -> None:
    for value in (json.dumps(GOOD).encode(), None):
        with pytest.raises(Refused):
            LatestBudgets().take(b"budgets/" + name, value)


def test_there_are_so_many_budgets_and_no_more() -> None:
    latest = LatestBudgets()
    for number in range(MAX_BUDGETS):
        latest.take(f"budgets/{number}".encode(), json.dumps(GOOD).encode())
    with pytest.raises(Refused, match="more than 1,000"):
        latest.take(b"budgets/more", json.dumps(GOOD).encode())
    latest.take(b"budgets/7", json.dumps(GOOD | {"bytes": 6}).encode())
    assert latest.by_name["7"].bytes == 6


def test_readers_of_quotas_and_of_budgets_leave_each_others_records_alone() -> None:
    quotas, budgets, alice = LatestQuotas(), LatestBudgets(), Entity("alice", None)
    for latest in (quotas, budgets):
        latest.take(key_of(ORDERS.name), encode(ORDERS))
        latest.take(key_of_quota(alice), encode_quota(ClusterQuota(alice, 5.0)))
    assert (list(quotas.by_entity), list(budgets.by_name)) == ([alice], [ORDERS.name])
