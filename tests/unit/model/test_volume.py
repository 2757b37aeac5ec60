"""Limits and volumes: what they accept, and the consumption at which a limit is reached."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotahost.model import Limit, LimitType, Volume
from quotahost.model.limits import contradict

CONSUMED, FREE, PERCENT = LimitType
SIZES = st.integers(0, 2**63 - 1)


@pytest.mark.proves("proposal-035.limit-types")
def test_limit_types_are_those_of_the_proposals_schema() -> None:
    assert [str(kind) for kind in LimitType] == ["ConsumedBytes", "MinFreeBytes", "MinFreePercentage"]


@pytest.mark.proves("proposal-035.limit-types")
@pytest.mark.parametrize(
    ("limit", "capacity", "consumed"),
    [
        (Limit(CONSUMED, 700), 1000, 700),
        (Limit(CONSUMED, 2000), 1000, 2000),
        (Limit(FREE, 300), 1000, 700),
        (Limit(FREE, 1001), 1000, 0),
        (Limit(PERCENT, 5), 1000, 950),
        (Limit(PERCENT, 5), 1001, 950),  # 50.05 bytes free are 51
        (Limit(PERCENT, 0.1), 10**15, 10**15 - 10**12),
        (Limit(PERCENT, 0), 1000, 1000),
        (Limit(PERCENT, 100), 1000, 0),
        (Limit(PERCENT, 5), 0, 0),
        (Limit(PERCENT, 5), 2**63 - 1, 8762203435012037016),
    ],
)
def test_a_limit_is_reached_at_this_consumption(limit: Limit, capacity: int, consumed: int) -> None:
    assert limit.consumed_at(capacity) == consumed


@settings(deadline=None)
@given(st.floats(0, 100) | st.integers(0, 100), SIZES)
def test_a_percentage_leaves_at_least_that_much_free_and_not_a_byte_more(level: float, capacity: int) -> None:
    free = capacity - Limit(PERCENT, level).consumed_at(capacity)
    demanded = capacity * Fraction(str(level)) / 100
    assert demanded <= free < demanded + 1


@pytest.mark.parametrize("kind", LimitType)
@pytest.mark.parametrize("level", [-1, -0.5, math.nan, math.inf, -math.inf, True, False, "5", None, 1j])
def test_a_limit_refuses_impossible_levels(kind: LimitType, level: Any) -> None:
    with pytest.raises(ValueError, match=f"the level of a {kind} limit must be"):
        Limit(kind, level)
    for wrong, words in ((partial(Limit, PERCENT, 100.5), "at most 100 %"), (partial(Limit, FREE, 0.5), "whole bytes")):
        with pytest.raises(ValueError, match=words):
            wrong()


@settings(deadline=None)
@given(st.sampled_from(LimitType), st.integers(0, 100), st.integers(0, 100), st.integers(100, 10**15))
def test_two_limits_contradict_if_hard_comes_first(kind: LimitType, soft: int, hard: int, capacity: int) -> None:
    pair = Limit(kind, soft), Limit(kind, hard)
    at_soft, at_hard = (limit.consumed_at(capacity) for limit in pair)
    told = contradict(*pair)
    assert told == (
        f"the hard limit {pair[1]} is reached before the soft limit {pair[0]}" if at_hard < at_soft else None
    )
    assert contradict(Limit(CONSUMED, soft), Limit(FREE, hard)) is contradict(None, pair[1]) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"broker": 1}, {"name": None}, {"capacity": -1}, {"capacity": 1.0}, {"consumed": True}, {"consumed": "1"},
        {"consumed": -1}, {"soft": 5}, {"hard": "5%"},
    ],
)  # fmt: skip
def test_a_volume_refuses_what_is_no_text_size_or_limit(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"broker": "1", "name": "/data", "capacity": 1, "consumed": 1}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Volume(**(good | wrong))
