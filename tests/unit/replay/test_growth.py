"""How a volume would have filled: whatever was recorded, the estimate never errs to the wrong side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quotahost.replay.growth import Growth

SHARES = st.floats(0, 1)
STEPS = st.lists(st.tuples(st.integers(0, 10**12), st.floats(0.1, 100), SHARES, SHARES), min_size=1, max_size=30)


@given(st.integers(0, 10**12), STEPS)
def test_the_same_shares_give_what_was_recorded(start: int, steps: list[tuple[int, float, float, float]]) -> None:
    growth = Growth(start)
    for used, seconds, then, _ in steps:
        growth.add(used, seconds, then * seconds, then * seconds)
        assert round(growth.used) == used
    assert not growth.estimated


@given(st.integers(0, 10**12), STEPS)
def test_larger_shares_never_leave_a_volume_emptier(start: int, steps: list[tuple[int, float, float, float]]) -> None:
    growth = Growth(start)
    for used, seconds, then, new in steps:
        growth.add(used, seconds, min(then, new) * seconds, max(then, new) * seconds)
        assert growth.used >= used - 1e-3


def test_half_the_share_is_half_the_growth_and_the_whole_of_what_is_deleted() -> None:
    growth = Growth(1000)
    growth.add(1400, 10, 10, 5)
    assert growth.used == 1200
    growth.add(1300, 10, 10, 5)
    assert growth.used == 1100


def test_what_a_pause_held_back_is_estimated_by_what_came_before_it() -> None:
    growth = Growth(0)
    growth.add(1000, 10, 10, 10)
    growth.add(1000, 10, 0, 10)
    assert growth.used == 2000
    assert growth.estimated


def test_what_comes_in_a_pause_comes_with_any_settings() -> None:
    growth = Growth(0)
    growth.add(500, 10, 0, 0)
    assert growth.used == 500
    assert not growth.estimated
