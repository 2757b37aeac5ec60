"""A cluster-wide quota divided by demand: fair, with a floor, never more than the quota, and deterministic."""

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotahost.model import QuotaType
from quotahost.pipeline.shares import FLOOR, MAX_CLIENT, STEPS
from quotahost.records.usage import MAX_CLIENTS, ClientKey, Usage, Used
from tests.reference.max_min import Division, divide, shares

NOW = datetime(2026, 11, 21, tzinfo=UTC)
KEY = ClientKey("alice", "app", QuotaType.PRODUCE)
CLOSE = 1e-6

quotas = st.floats(1e-3, 1e15)
# Demands in parts of the quota: none, small, about a fair part, all, too much.
parts = st.none() | st.sampled_from([0.0, 0.01, 0.05, 0.25, 1 / 3, 0.5, 1.0, 7.0]) | st.floats(0, 2)
demanded = st.lists(parts, min_size=1, max_size=12)
counts = st.integers(0, 5)


def of(quota: float, wanted: list[float | None]) -> Mapping[str, float | None]:
    return {str(n): None if part is None else part * quota for n, part in enumerate(wanted)}


def all_of(divided: Division, others: int, silent: int) -> list[float]:
    return [*divided.asking.values(), *[divided.others] * others, *[divided.silent] * silent]


@given(quotas, demanded, counts, counts)
def test_the_sum_never_exceeds_the_quota_in_whatever_order_it_is_added_and_wastes_nothing(
    quota: float, wanted: list[float | None], others: int, silent: int
) -> None:
    given = all_of(divide(quota, of(quota, wanted), others, silent), others, silent)
    assert math.fsum(given) <= quota
    for _ in range(5):
        random.Random(1).shuffle(given)
        assert sum(given) <= quota
    assert math.fsum(given) == pytest.approx(quota, rel=CLOSE)


@given(st.floats(1e-300, 1e308), st.lists(st.none() | st.floats(0, 1e308), min_size=1, max_size=9), counts)
@example(1e308, [None] * 9, 5)
def test_whatever_the_size_of_quota_and_demands_the_sum_holds(
    quota: float, wanted: list[float | None], others: int
) -> None:
    demands = {str(n): demand for n, demand in enumerate(wanted)}
    given = all_of(divide(quota, demands, others), others, 0)
    assert math.fsum(given) <= quota
    assert all(math.isfinite(share) and share >= 0 for share in given)


@given(st.integers(1, 10_000), quotas)
def test_it_holds_for_ten_thousand_brokers(brokers: int, quota: float) -> None:
    divided = divide(quota, {str(n): None for n in range(brokers)})
    assert sum(divided.asking.values()) <= quota


@given(quotas, demanded, counts, counts)
def test_every_broker_keeps_the_floor(quota: float, wanted: list[float | None], others: int, silent: int) -> None:
    given = all_of(divide(quota, of(quota, wanted), others, silent), others, silent)
    floor = FLOOR * quota / len(given)
    assert min(given) >= floor * (1 - CLOSE)


@given(quotas, demanded, counts, counts)
def test_it_is_max_min_fair(quota: float, wanted: list[float | None], others: int, silent: int) -> None:
    """Whoever gets less than it demands gets as much as anybody does who got more than the floor."""
    demands = of(quota, wanted)
    divided = divide(quota, demands, others, silent)
    floor = FLOOR * quota / (len(wanted) + others + silent)
    most = max(divided.asking.values())
    for broker, demand in demands.items():
        share = divided.asking[broker]
        if demand is None or share < min(demand, quota) * (1 - CLOSE):
            assert share >= most * (1 - CLOSE)
            assert divided.others <= floor * (1 + CLOSE), "nothing is left over while somebody lacks"


@given(quotas, demanded, counts, counts)
def test_where_all_is_met_the_rest_is_spread_equally_but_not_to_the_silent(
    quota: float, wanted: list[float | None], others: int, silent: int
) -> None:
    demands = of(quota, wanted)
    divided = divide(quota, demands, others, silent)
    floor = FLOOR * quota / (len(wanted) + others + silent)
    assert divided.silent == pytest.approx(floor, rel=CLOSE)
    if all(d is not None and divided.asking[b] > d * (1 + CLOSE) + floor for b, d in demands.items()):
        spare = divided.others - floor
        for broker, demand in demands.items():
            assert divided.asking[broker] - max(floor, demand or 0.0) == pytest.approx(
                spare, rel=1e-3, abs=quota * CLOSE
            )


@given(quotas, demanded, counts, st.randoms())
def test_it_depends_on_who_demands_what_and_not_on_the_order(
    quota: float, wanted: list[float | None], others: int, chance: random.Random
) -> None:
    demands = list(of(quota, wanted).items())
    first = divide(quota, dict(demands), others)
    chance.shuffle(demands)
    assert divide(quota, dict(demands), others) == first


@given(quotas, demanded, counts, st.integers(0, 11), st.floats(1, 3))
def test_a_broker_that_demands_more_never_gets_less(
    quota: float, wanted: list[float | None], others: int, at: int, times: float
) -> None:
    at %= len(wanted)
    before = divide(quota, of(quota, wanted), others).asking[str(at)]
    part = wanted[at]
    more = None if part is None else max(part, 0.01) * times
    after = divide(quota, of(quota, [*wanted[:at], more, *wanted[at + 1 :]]), others).asking[str(at)]
    assert after >= before * (1 - CLOSE)


def usage(broker: str, *rates: tuple[str, float, float | None]) -> Usage:
    clients = (Used(ClientKey(u, "app", QuotaType.PRODUCE), rate, demand, 3e6) for u, rate, demand in rates)
    return Usage(broker, NOW, tuple(clients))


def test_every_broker_gets_every_client_the_first_of_each_broker_first() -> None:
    found = shares([usage("2", ("carl", 2e6, None)), usage("1", ("bob", 1e6, None), ("alice", 0, 0.0)), usage("3")])
    names = ["bob", "carl", "alice"]
    assert {b: [s.key.principal for s in row] for b, row in found.items()} == dict.fromkeys("123", names)
    assert [found["1"][0].share, found["2"][1].share] == pytest.approx([2.9e6, 2.9e6])
    assert [found[b][0].share / found[b][0].quota for b in "23"] == pytest.approx([0.05 / 3] * 2)


@given(quotas, demanded, counts, counts)
def test_what_is_published_is_the_division_of_the_quota_and_elsewhere_at_most_a_step_less(
    quota: float, wanted: list[float | None], others: int, silent: int
) -> None:
    demands = of(quota, wanted)
    uses = [
        Usage(b, NOW, (Used(KEY, 0.0, None if demand is None else min(demand, quota), quota),))
        for b, demand in demands.items()
    ]
    idle = [Usage(f"other-{n}", NOW, ()) for n in range(others)]
    gone = [Usage(f"silent-{n}", NOW, ()) for n in range(silent)]
    found = shares([*uses, *idle, *gone], {each.broker for each in gone})
    before = divide(quota, {b: d if d is None else min(d, quota) for b, d in demands.items()}, others, silent)
    step = quota / STEPS / len(found)
    for broker, ((key, share, stated),) in ((b, [(s.key, s.share, s.quota) for s in row]) for b, row in found.items()):
        part = share / stated * quota
        assert key == KEY
        if broker in demands:
            assert part == pytest.approx(before.asking[broker], rel=1e-9)
            assert stated == quota
        elif broker.startswith("silent"):
            assert part == pytest.approx(before.silent, rel=1e-9)
        else:
            assert before.others * (1 + 1e-9) >= part >= before.others - step * (1 + 1e-9)


def test_the_usage_of_a_silent_broker_is_ignored_but_it_keeps_the_floor() -> None:
    usages = [usage("1", ("alice", 1e6, None)), usage("2", ("alice", 1e6, None), ("bob", 1, None)), usage("3")]
    found = shares(usages, silent={"2"})
    assert [s.key.principal for s in found["2"]] == ["alice"], "no broker reports bob any more"
    assert [found[b][0].share / found[b][0].quota for b in "123"] == pytest.approx([2.9 / 3, 0.05 / 3, 0.05 / 3])
    assert shares(usages, silent=set("123")) == {"1": (), "2": (), "3": ()}


@pytest.mark.parametrize("invented", [1e-300, 1e-9, 1.0, 1e12, 1.7e308])
def test_what_a_broker_says_of_a_quota_changes_its_own_share_alone(invented: float) -> None:
    honest = [usage("1", ("alice", 1e3, 1e3)), usage("2", ("alice", 2.5e6, 2.5e6))]
    liar = Usage("3", NOW, (Used(KEY, 1e308, 0.2 * invented, invented),))
    found = shares([*honest, liar])
    told = shares([*honest, Usage("3", NOW, (Used(KEY, 0.0, 0.2 * 3e6, 3e6),))])
    assert [found[b][0].share for b in "12"] == [told[b][0].share for b in "12"]


def test_a_broker_that_lists_many_clients_displaces_none_that_another_lists_early() -> None:
    liar = usage("1", *((f"x{n:03}", 1e308, None) for n in range(MAX_CLIENTS)))
    honest = usage("2", *((f"u{n:03}", 1.0, None) for n in range(100)))
    found = shares([liar, honest])
    assert {s.key.principal for s in found["2"]} >= {f"u{n:03}" for n in range(100)}


def test_a_client_with_long_names_is_left_out_and_takes_no_place() -> None:
    long = usage("1", *((f"{n:03}" * MAX_CLIENT, 1.0, None) for n in range(5)), ("alice", 1.0, None))
    assert [s.key.principal for s in shares([long])["1"]] == ["alice"]


def test_every_broker_gets_the_same_clients_as_many_as_fit_into_a_record() -> None:
    many = [(f"u{n:03}", float(n), None) for n in range(MAX_CLIENTS + 50)]
    found = shares([usage("1", *many[:200]), usage("2", *many[200:])])
    assert [s.key for s in found["1"]] == [s.key for s in found["2"]]
    first = {f"u{n:03}" for n in (*range(150), *range(200, MAX_CLIENTS + 50))}
    assert {s.key.principal for s in found["1"]} == first
