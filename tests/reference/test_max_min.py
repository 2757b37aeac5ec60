"""A cluster-wide quota divided by demand: fair, with a floor, never more than the quota, and deterministic.

tests/pipeline/test_shares.py holds the pipeline's SQL to this model.
"""

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.max_min import divide
from quotahost.pipeline.shares import FLOOR, STEPS

CLOSE = 1e-6

# Demands as parts of the quota: unlimited (None), zero, small, about a fair part, all, too much.
parts = st.none() | st.sampled_from([0.0, 0.01, 0.05, 0.25, 1 / 3, 0.5, 1.0, 7.0, 5e-324, math.inf]) | st.floats(0, 2)
demanded = st.lists(parts, min_size=1, max_size=12).map(lambda wanted: {str(n): part for n, part in enumerate(wanted)})
counts = st.integers(0, 5)
Demands = dict[str, float | None]


@given(demanded, counts, counts)
@example(dict.fromkeys(map(str, range(10_000))), 0, 0)
def test_in_any_order_the_sum_is_within_the_quota_and_wastes_little_and_the_rest_above_the_floor_is_max_min_fair(
    demands: Demands, others: int, silent: int
) -> None:
    """A broker that gets less than it demands gets as much as any other broker."""
    divided = divide(demands, others, silent)
    given = [*divided.asking.values(), *[divided.others] * others, *[divided.silent] * silent]
    assert math.fsum(given) <= 1
    for _ in range(5):
        random.Random(1).shuffle(given)
        assert sum(given) <= 1
    assert math.fsum(given) >= 1 - others / (len(given) * STEPS) - CLOSE, "each other broker wastes at most one step"
    floor = FLOOR / (len(demands) + others + silent)
    assert divided.silent == pytest.approx(floor, rel=CLOSE)
    assert min(*divided.asking.values(), divided.others) >= floor * (1 - CLOSE)
    most = max(divided.asking.values())
    for broker, demand in demands.items():
        share = divided.asking[broker]
        if demand is None or share < min(demand, 1) * (1 - CLOSE):
            assert share >= most * (1 - CLOSE)
            assert divided.others <= floor * (1 + CLOSE), "others get only the floor while a broker lacks some"
