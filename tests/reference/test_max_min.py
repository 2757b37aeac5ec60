"""A cluster-wide quota divided by demand: fair, with a floor, never more than the quota, and deterministic.

tests/pipeline/test_shares.py holds the pipeline's SQL to this model.
"""

import math
import random
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotahost.model import QuotaType
from quotahost.pipeline.shares import FLOOR, STEPS
from quotahost.records.usage import Usage, Used
from tests.reference.max_min import divide, shares

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CLOSE = 1e-6

# Demands in parts of the quota: none, small, about a fair part, all, too much.
parts = st.none() | st.sampled_from([0.0, 0.01, 0.05, 0.25, 1 / 3, 0.5, 1.0, 7.0, 5e-324, math.inf]) | st.floats(0, 2)
demanded = st.lists(parts, min_size=1, max_size=12).map(lambda wanted: {str(n): part for n, part in enumerate(wanted)})
counts = st.integers(0, 5)
Demands = dict[str, float | None]


@given(demanded, counts, counts)
@example(dict.fromkeys(map(str, range(10_000))), 0, 0)
def test_the_sum_never_exceeds_the_quota_in_whatever_order_it_is_added_and_wastes_little(
    demands: Demands, others: int, silent: int
) -> None:
    divided = divide(demands, others, silent)
    given = [*divided.asking.values(), *[divided.others] * others, *[divided.silent] * silent]
    assert math.fsum(given) <= 1
    for _ in range(5):
        random.Random(1).shuffle(given)
        assert sum(given) <= 1
    assert math.fsum(given) >= 1 - others / (len(given) * STEPS) - CLOSE, "a step for each that doesn't use it"


@given(demanded, counts, counts)
def test_every_broker_keeps_the_floor_and_the_rest_is_max_min_fair(demands: Demands, others: int, silent: int) -> None:
    """Whoever gets less than it demands gets as much as anybody does who got more than the floor."""
    divided = divide(demands, others, silent)
    floor = FLOOR / (len(demands) + others + silent)
    assert divided.silent == pytest.approx(floor, rel=CLOSE)
    assert min(*divided.asking.values(), divided.others) >= floor * (1 - CLOSE)
    most = max(divided.asking.values())
    for broker, demand in demands.items():
        share = divided.asking[broker]
        if demand is None or share < min(demand, 1) * (1 - CLOSE):
            assert share >= most * (1 - CLOSE)
            assert divided.others <= floor * (1 + CLOSE), "nothing is left over while somebody lacks"


def usage(broker: str, *rates: tuple[str, float, float | None]) -> Usage:
    clients = (Used(u, "app", QuotaType.PRODUCE, rate, demand, 3e6) for u, rate, demand in rates)
    return Usage(broker, NOW, tuple(clients))


def test_every_broker_gets_every_client_the_first_of_each_broker_first() -> None:
    found = shares([usage("2", ("carl", 2e6, None)), usage("1", ("bob", 1e6, None), ("alice", 0, 0.0)), usage("3")])
    names = ["bob", "carl", "alice"]
    assert {b: [s.key.principal for s in row] for b, row in found.items()} == dict.fromkeys("123", names)
    assert [found["1"][0].share, found["2"][1].share] == pytest.approx([2.9e6, 2.9e6])
    assert [found[b][0].share / found[b][0].quota for b in "23"] == pytest.approx([0.05 / 3] * 2)


def test_the_usage_of_a_silent_broker_is_ignored_but_it_keeps_the_floor() -> None:
    usages = [usage("1", ("alice", 1e6, None)), usage("2", ("alice", 1e6, None), ("bob", 1, None)), usage("3")]
    found = shares(usages, silent={"2"})
    assert [s.key.principal for s in found["2"]] == ["alice"], "no broker reports bob any more"
    assert [found[b][0].share / found[b][0].quota for b in "123"] == pytest.approx([2.9 / 3, 0.05 / 3, 0.05 / 3])
    assert shares(usages, silent=set("123")) == {"1": (), "2": (), "3": ()}
