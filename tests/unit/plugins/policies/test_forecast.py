"""The policy ``forecast``, mostly in a closed loop: a disk that fills at the factor times the demand."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quotahost.api import Context
from quotahost.model import Limit, LimitType, Volume
from quotahost.plugins.policies import forecast as module
from quotahost.plugins.policies.forecast import Forecast
from quotahost.plugins.policies.limits import Limits
from quotahost.testing.broker import FakeBroker
from quotahost.testing.checks import check_policy

MB, GB = 10**6, 10**9
SOFT, HARD, CAPACITY = 800 * GB, 900 * GB, 1000 * GB
NODE = FakeBroker()
HORIZON = 600.0
POLL = 0.25  # seconds between reads
LAG = 2  # polls until a measurement is seen: 0.5 s

LOG = logging.getLogger("test.forecast")


@dataclass
class Host:
    storage_soft: Limit | None = field(default_factory=lambda: Limit(LimitType.CONSUMED_BYTES, SOFT))
    storage_hard: Limit | None = field(default_factory=lambda: Limit(LimitType.CONSUMED_BYTES, HARD))
    mode: str = "enforce"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def forecast(clock: Clock, mode: str = "enforce") -> Forecast:
    host = cast("Any", Host(mode=mode))
    context = Context("forecast", Forecast.Section(), host, 1, LOG, broker=NODE, metrics=NODE)
    return Forecast(context, clock)


def disk(consumed: float, name: str = "/data") -> Volume:
    return Volume("1", name, CAPACITY, max(0, int(consumed)))


def ramp(consumed: float) -> float:
    return min(1.0, max(0.0, (HARD - consumed) / (HARD - SOFT)))


@dataclass
class Disk:
    """A disk that fills at the factor times the demand, in bytes/s, less what is deleted in a poll."""

    demand: Callable[[float], float]
    deleted: Callable[[float], float] = lambda now: 0.0
    consumed: float = SOFT
    name: str = "/data"
    history: list[float] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = deque([self.consumed] * (LAG + 1), maxlen=LAG + 1)

    def measured(self) -> Volume:
        self.seen.append(self.consumed)
        return disk(self.seen[0], self.name)

    def fill(self, now: float, factor: float) -> None:
        self.history.append(self.consumed)
        self.consumed += factor * self.demand(now) * POLL - self.deleted(now)


def run(policy: Limits, clock: Clock, *disks: Disk, minutes: float, enforced: bool = True) -> None:
    """Read, publish the smallest factor, let the disks fill; again and again."""
    for _ in range(int(minutes * 60 / POLL)):
        for one in disks:
            one.factors.append(policy.quota_factor(one.measured()))
        applied = min(one.factors[-1] for one in disks) if enforced else 1.0
        for one in disks:
            one.fill(clock.now, applied)
        clock.now += POLL


def alone(one: Disk, minutes: float) -> Disk:
    clock = Clock()
    run(forecast(clock), clock, one, minutes=minutes)
    return one


def by_ramp(one: Disk, minutes: float) -> Disk:
    clock = Clock()
    context = Context("limits", None, cast("Any", Host()), 1, LOG, broker=NODE, metrics=NODE)
    run(Limits(context), clock, one, minutes=minutes)
    return one


def movement(factors: list[float]) -> float:
    return sum(abs(a - b) for a, b in pairwise(factors))


# ---- in a closed loop ------------------------------------------------------------------------------


@pytest.mark.parametrize("demand", [50 * MB, 200 * MB, GB, 5 * GB])
def test_at_a_constant_demand_the_hard_limit_is_never_reached(demand: float) -> None:
    one = alone(Disk(lambda now: demand), minutes=40)
    assert max(one.history) < HARD
    assert min(one.factors) > 0.0


@pytest.mark.parametrize("demand", [300 * MB, GB, 2 * GB])
def test_the_space_left_is_shared_out_over_the_horizon(demand: float) -> None:
    one = alone(Disk(lambda now: demand), minutes=5)
    fill_rate = (one.history[-1] - one.history[-5]) / (4 * POLL)
    assert fill_rate == pytest.approx((HARD - one.consumed) / HORIZON, rel=0.02)


@pytest.mark.parametrize("demand", [50 * MB, 200 * MB, GB, 5 * GB])
@pytest.mark.parametrize("deleted", [0.0, 0.5])
def test_once_settled_the_factor_changes_by_less_than_5_percent_a_read(demand: float, deleted: float) -> None:
    one = alone(Disk(lambda now: demand, lambda now: deleted * demand * POLL), minutes=20)
    settled = one.factors[len(one.factors) // 2 :]
    assert all(abs(b - a) < 0.05 * a for a, b in pairwise(settled))


@pytest.mark.parametrize("every", [POLL, 30.0])
def test_when_as_much_is_deleted_as_flows_in_the_factor_returns_to_1_above_soft(every: float) -> None:
    lumps = Disk(lambda now: GB, lambda now: GB * every if now % every == 0 else 0.0, consumed=850 * GB)
    alone(lumps, minutes=60)
    assert min(lumps.factors[-2400:]) == pytest.approx(1.0)
    assert min(lumps.factors) < 0.7
    assert min(lumps.history[-2400:]) > SOFT - GB * every


def test_at_a_steady_demand_the_factor_moves_less_than_that_of_the_ramp() -> None:
    def disk_under_load() -> Disk:
        return Disk(lambda now: GB)

    ours, plain = alone(disk_under_load(), 10), by_ramp(disk_under_load(), 10)
    first_minute = int(60 / POLL)
    assert movement(ours.factors[first_minute:]) < 0.25 * movement(plain.factors[first_minute:])
    assert ours.factors[-1] > 5 * plain.factors[-1]


def test_deletions_in_lumps_move_the_factor_less_than_that_of_the_ramp() -> None:
    def disk_with_retention() -> Disk:
        return Disk(lambda now: GB, lambda now: 15 * GB if now % 30 == 0 else 0.0, consumed=850 * GB)

    ours, plain = alone(disk_with_retention(), 60), by_ramp(disk_with_retention(), 60)
    half = len(ours.factors) // 2
    assert movement(ours.factors[half:]) < 0.75 * movement(plain.factors[half:])
    assert max(ours.history) < HARD


def test_a_demand_that_doubles_is_throttled_to_the_same_fill_rate() -> None:
    one = alone(Disk(lambda now: GB if now < 300 else 2 * GB), minutes=8)
    before, after = one.factors[int(299 / POLL)], one.factors[-1]
    left = [HARD - one.history[int(299 / POLL)], HARD - one.consumed]
    assert after / before == pytest.approx(left[1] / left[0] / 2, rel=0.05)
    assert max(one.history) < HARD


def test_a_volume_slowed_for_anothers_sake_learns_its_own_demand() -> None:
    clock = Clock()
    tight, wide = Disk(lambda now: 2 * GB, name="/a"), Disk(lambda now: 400 * MB, name="/b")
    run(forecast(clock), clock, wide, tight, minutes=5)
    assert wide.factors[-1] == pytest.approx((HARD - wide.consumed) / HORIZON / (400 * MB), rel=0.1)


def test_in_shadow_mode_the_factor_is_the_one_it_would_take() -> None:
    clock, one = Clock(), Disk(lambda now: 200 * MB)
    run(forecast(clock, mode="shadow"), clock, one, minutes=3, enforced=False)
    assert one.factors[-1] == pytest.approx((HARD - one.consumed) / HORIZON / (200 * MB), rel=0.1)


def test_filling_that_no_factor_stops_does_not_hold_the_factor_down_once_it_ends() -> None:
    clock = Clock()
    policy = forecast(clock)
    for minute in range(300):
        policy.quota_factor(disk(HARD, "/full"))
        shut = policy.quota_factor(disk(810 * GB + minute * MB, "/reassigned"))
        clock.now += 60.0
    for _ in range(200):
        policy.quota_factor(disk(0, "/full"))
        after = policy.quota_factor(disk(811 * GB, "/reassigned"))
        clock.now += 10.0
    assert shut < 0.01
    assert after == pytest.approx(1.0, abs=0.01)


# ---- read by read ----------------------------------------------------------------------------------


def test_it_is_open_below_soft_and_shut_from_hard_on_at_once() -> None:
    clock = Clock()
    policy = forecast(clock)
    factors = []
    for consumed in (0, SOFT, HARD, SOFT, HARD + GB, 0):
        factors.append(policy.quota_factor(disk(consumed)))
        clock.now += POLL
    assert factors == [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]


def test_without_limits_it_is_open() -> None:
    policy = forecast(Clock())
    policy._context.settings = cast("Any", Host(None, None))
    assert policy.quota_factor(disk(CAPACITY)) == 1.0


def test_a_volume_not_seen_before_starts_with_the_ramp() -> None:
    assert forecast(Clock()).quota_factor(disk(870 * GB)) == 0.3


def test_deleted_bytes_are_space_at_once() -> None:
    clock = Clock()
    policy, one = forecast(clock), Disk(lambda now: GB)
    run(policy, clock, one, minutes=5)
    one.consumed -= 30 * GB
    before = one.factors[-1]
    run(policy, clock, one, minutes=0.5)
    after = one.factors[-int(30 / POLL) :]
    assert after[LAG + 1] > before
    assert after[-1] > 1.5 * before


def test_a_volume_unseen_for_10_minutes_is_forgotten() -> None:
    clock = Clock()
    policy = forecast(clock)
    run(policy, clock, Disk(lambda now: 0, name="/seen"), Disk(lambda now: GB), minutes=5)
    for _ in range(7):
        clock.now += 100.0
        policy.quota_factor(disk(SOFT, "/seen"))
    assert policy.quota_factor(disk(870 * GB)) == 0.3


def test_the_memory_is_bounded_and_volumes_beyond_it_get_the_ramp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VOLUMES", 2)
    clock = Clock()
    policy = forecast(clock)
    for consumed in (850 * GB, 851 * GB):
        for name in ("/1", "/2", "/3"):
            policy.quota_factor(disk(consumed, name))
        clock.now += 10
    assert len(policy._histories) == 2
    assert policy.quota_factor(disk(870 * GB, "/3")) == 0.3


def test_a_new_horizon_is_used_from_then_on() -> None:
    clock = Clock()
    policy, one = forecast(clock), Disk(lambda now: GB)
    run(policy, clock, one, minutes=3)
    policy.reconfigure(Forecast.Section(horizon=timedelta(minutes=5)))
    before = one.factors[-1]
    run(policy, clock, one, minutes=1)
    assert one.factors[-1] == pytest.approx(2 * before * 0.85, rel=0.1)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.001, 700) | st.just(POLL), st.sampled_from("ab"), st.integers(SOFT - GB, HARD + GB)),
        max_size=40,
    )
)
@example([(0.25, "a", HARD), (0.0, "a", SOFT + 1)])  # no time between two looks
def test_whatever_happens_the_factor_is_in_range_and_guarded_close_to_hard(reads: list[tuple[float, str, int]]) -> None:
    clock = Clock()
    policy = forecast(clock)
    for passed, name, consumed in reads:
        clock.now += passed
        factor = policy.quota_factor(disk(consumed, name))
        assert 0.0 <= factor <= 1.0
        assert (factor == 0.0) == (consumed >= HARD)
        assert factor == 1.0 or consumed > SOFT
        if consumed >= HARD - (HARD - SOFT) // 10:
            assert factor <= ramp(consumed)


def test_it_declares_that_it_depends_on_the_time() -> None:
    assert (Forecast.depends_on_time, Limits.depends_on_time) == (True, False)


def test_it_keeps_the_contract_of_a_policy() -> None:
    properties: dict[str, Any] = {
        "static.storage.soft.min-free-percent": "0.2",
        "static.storage.hard.min-free-percent": "0.05",
        "plugin.forecast.horizon": "5m",
    }
    check_policy(Forecast, properties, name="forecast", reconfigured=properties | {"plugin.forecast.horizon": "PT1H"})
