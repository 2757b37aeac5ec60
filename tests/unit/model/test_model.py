"""The values: what they accept, what they refuse, when a limit is reached, and what is used of a budget."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.model import Factor, Limit, LimitType, Quota, Scope, Volume
from quotahost.model.budgets import Budget, Replica, Topics, sums


def volume_with(changes: dict[str, Any]) -> Volume:
    given: dict[str, Any] = {"broker": "1", "name": "/data", "capacity": 1, "consumed": 1} | changes
    return Volume(**given)


@pytest.mark.parametrize(
    ("make", "values", "words"),
    [
        (Quota, [0, 0.0, -0.0, -1, -1e-300, math.nan, math.inf, -math.inf], "must be finite and above 0"),
        (Quota, ["10", b"10", True, False, [10], Decimal(10), 1j, object()], "must be a number or None"),
        (Scope.group, ["", None], "non-empty name"),
        (Factor, [-0.01, 1.01, math.nan, math.inf, -math.inf, "0.5", None, True, False], r"number from 0\.0 to 1\.0"),
        *((partial(Limit, kind), [-1, -0.5, math.nan, math.inf, -math.inf, True, False, "5", None, 1j],
           f"the level of a {kind} limit must be") for kind in LimitType),
        (partial(Limit, LimitType.MIN_FREE_PERCENTAGE), [100.5], "at most 100 %"),
        (partial(Limit, LimitType.MIN_FREE_BYTES), [0.5], "whole bytes"),
        *((volume_with, [{name: wrong} for wrong in values], name.rstrip("s")) for name, values in (
            ("broker", [1]), ("name", [None]), ("capacity", [-1, 1.0, 10**5000]),
            ("consumed", [True, "1", -1, 10**5000]), ("soft", [5]), ("hard", ["5%"]),
            ("topics", [frozenset({"t" * 250})]))),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused(make: Callable[[Any], object], values: list[Any], words: str) -> None:
    for value in values:
        with pytest.raises(ValueError, match=words):
            make(value)


# ---- limits and volumes ----

CONSUMED, FREE, PERCENT = LimitType
SIZES = st.integers(0, 2**63 - 1)


@pytest.mark.proves("proposal-035.limit-types")
def test_limit_types_are_those_of_the_proposals_schema() -> None:
    assert [str(kind) for kind in LimitType] == ["ConsumedBytes", "MinFreeBytes", "MinFreePercentage"]


@given(st.floats(0, 100) | st.integers(0, 100), SIZES)
def test_a_percentage_leaves_at_least_that_much_free_and_not_a_byte_more(level: float, capacity: int) -> None:
    free = capacity - Limit(PERCENT, level).consumed_at(capacity)
    demanded = capacity * Fraction(str(level)) / 100
    assert demanded <= free < demanded + 1


def test_a_number_of_numpys_is_the_number_that_it_prints() -> None:
    class Float64(float):
        def __repr__(self) -> str:
            return f"np.float64({float(self)})"

    assert Limit(LimitType.MIN_FREE_PERCENTAGE, Float64(0.1)).consumed_at(1000) == 999


# ---- budgets ----

LETTERS = st.text("ab.", min_size=1, max_size=4)
PATTERNS = LETTERS | st.text("ab.", max_size=3).map(lambda begin: begin + "*")


@given(st.lists(st.lists(PATTERNS, min_size=1, max_size=3), max_size=6), LETTERS)
def test_a_topic_belongs_to_each_budget_that_names_its_begin(patterns: Sequence[Sequence[str]], topic: str) -> None:
    budgets = [Budget(str(number), tuple(of), 1) for number, of in enumerate(patterns)]

    def names(pattern: str) -> bool:
        return topic.startswith(pattern[:-1]) if pattern.endswith("*") else topic == pattern

    expected = {budget.name for budget in budgets if any(map(names, budget.topics))}
    found = [budget.name for budget in Topics(budgets).budgets(topic)]
    assert (set(found), len(found)) == (expected, len(expected))


def test_a_budget_of_all_topics_leaves_kafkas_own_and_quotahosts_out() -> None:
    """Else nobody could raise it when it is used up: `apply` writes to one of these topics."""
    found = Topics([Budget("all", ("*",), 1), Budget("named", ("__quotahost_quotas", "__consumer*"), 1)])
    for topic, name in (("t", "all"), ("__quotahost_quotas", "named"), ("__consumer", "named")):
        assert [budget.name for budget in found.budgets(topic)] == [name]


def test_bytes_of_leaders_count_or_those_of_all_replicas() -> None:
    replicas = [Replica("orders.eu", 10, True), Replica("orders.eu", 5, False), Replica("orders.us", 3, False)]
    leaders, all_of_them = Budget("l", ("orders.*",), 100), Budget("r", ("orders.eu", "orders.*"), 100, replicas=True)
    parts = sums([leaders, all_of_them, Budget("n", ("logs",), 1)], replicas)
    assert {name: part.used for name, part in parts.items()} == {"l": 10, "r": 18, "n": 0}
    assert parts["l"].topics == parts["r"].topics == {"orders.eu", "orders.us"}
    assert not parts["n"].topics
