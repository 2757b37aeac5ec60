"""Which rows ``quotahost top`` shows, and in what order."""

from __future__ import annotations

import pytest

from quotahost.cli.top.rows import Choice, Order
from quotahost.model import QuotaType
from quotahost.model.use import LimitedBy
from tests.unit.cli.top.uses import use

SLOW = use("bob", "slow", rate=5e5, quota=1e6, delay_ms=300.0, bound=LimitedBy.FACTOR)
FAST = use("carol", "fast", rate=9e6, quota=1e8)
FETCH = use("alice", "reads", quota_type=QuotaType.FETCH, rate=2e7, quota=None, limit=None)
NOTHING = use("dave", "none", rate=3.0, quota=0.0, bound=LimitedBy.QUOTA)
IDLE = use("erin", "idle", rate=0.0)
ALL = [SLOW, FETCH, IDLE, NOTHING, FAST]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (Order.RATE, [FAST, SLOW, NOTHING, FETCH]),  # bytes that are read aren't compared with those written
        (Order.SHARE, [NOTHING, SLOW, FAST, FETCH]),
        (Order.DELAY, [SLOW, FAST, NOTHING, FETCH]),
        (Order.NAME, [FETCH, SLOW, FAST, NOTHING]),
    ],
)
def test_the_largest_come_first_and_the_idle_are_left_out(order: Order, wanted: list[object]) -> None:
    assert Choice(order).rows(ALL) == wanted


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice(type=QuotaType.FETCH), {FETCH}),
        (Choice(held=True), {SLOW, NOTHING}),
        (Choice(text="CAR"), {FAST}),
        (Choice(text="reads"), {FETCH}),
        (Choice(text="factor"), {SLOW}),
        (Choice(text="nothing"), set()),
    ],
)
def test_a_filter_keeps_what_it_names(choice: Choice, wanted: set[object]) -> None:
    assert set(choice.rows(ALL)) == wanted
