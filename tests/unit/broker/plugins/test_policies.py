"""Tests the policies: ``limits``, the ramp between soft and hard limits of all types; and ``setpoint``.

Most tests of ``setpoint`` play a closed loop: a disk fills at the factor times the demand.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from statistics import fmean
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness import policy_scenes as scenes
from harness.policy_scenes import HOUR, Disk, deviation
from quotahost.broker.plugins.policies import setpoint as module
from quotahost.broker.plugins.policies.limits import Limits
from quotahost.broker.plugins.policies.setpoint import Setpoint
from quotahost.cli.lab.world import pauses
from quotahost.model import Limit, LimitType, Volume
from tests.fakes.plugin_context import Clock, limited

CONSUMED, FREE, PERCENT = LimitType


def policy(soft: Limit | None = None, hard: Limit | None = None) -> Limits:
    return Limits(limited("limits", soft, hard))


def used(consumed: int, capacity: int = 20, **limits: Any) -> Volume:
    return Volume("1", "/data", capacity, consumed, **limits)


capacities = st.integers(0, 2**63 - 1)
some_limits = (
    st.none()
    | st.builds(Limit, st.sampled_from([CONSUMED, FREE]), capacities)
    | st.builds(Limit, st.just(PERCENT), st.floats(0, 100) | st.integers(0, 100))
)


def by_hand(limit: Limit, capacity: int) -> Fraction:
    """The exact consumption at the limit, at most the capacity."""
    if limit.type is CONSUMED:
        return Fraction(min(limit.level, capacity))
    free = limit.level if limit.type is FREE else Fraction(str(limit.level)) * capacity / 100
    return max(Fraction(0), Fraction(capacity - free))


@pytest.mark.proves("proposal-035.limit-types", "proposal-035.progressive")
@given(some_limits, some_limits, capacities, st.floats(0, 1.1) | st.just(2.0), st.integers(0, 2**60))
@example(Limit(CONSUMED, 5), Limit(CONSUMED, 5), 10, 0.5, 0)
@example(Limit(PERCENT, 5), Limit(PERCENT, 5), 0, 0.0, 0)
def test_it_is_the_exact_ramp(soft: Limit | None, hard: Limit | None, capacity: int, share: float, more: int) -> None:
    consumed, judge = int(capacity * share), policy(soft, hard)
    factor, later = (judge.quota_factor(used(each, capacity)) for each in (consumed, consumed + more))
    assert 0.0 <= later <= factor <= 1.0
    breached = judge.breaches_hard_limit(used(consumed, capacity)), judge.breaches_soft_limit(used(consumed, capacity))
    assert breached == (factor == 0, factor < 1)
    at_hard = capacity if hard is None else by_hand(hard, capacity)
    at_soft = at_hard if soft is None else min(at_hard, by_hand(soft, capacity))
    if soft is None and hard is None:
        assert factor == 1.0
    elif consumed >= at_hard:
        assert factor == 0.0
    elif at_hard - at_soft >= 10**4:  # a shorter ramp shows the rounding to whole bytes
        ramp = min(Fraction(1), (at_hard - consumed) / (at_hard - at_soft))
        assert factor == pytest.approx(float(ramp), abs=1e-3)


def test_a_contradiction_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    judge = policy(Limit(CONSUMED, 15), Limit(PERCENT, 50))  # contradictory on a volume of 20 bytes, not on one of 40
    for volume in (used(5, capacity=40), Volume("2\n", "/data", 20, 5), used(5)):
        judge.quota_factor(volume)
    assert caplog.messages == [
        "broker '2\\n', volume /data: the hard limit MinFreePercentage 50 % is reached at 10 bytes, before the "
        "soft limit ConsumedBytes 15 bytes at 15; only the hard limit applies until one of them is changed"
    ]


@pytest.mark.proves("proposal-035.policy-limits", "proposal-035.volume-limits", "proposal-035.limits-by-volume")
def test_a_volumes_own_limits_come_before_those_of_this_broker() -> None:
    judge = policy(Limit(CONSUMED, 10), Limit(CONSUMED, 15))
    own = used(12, soft=Limit(FREE, 9))
    assert (judge.soft_limit(own), judge.hard_limit(own)) == (Limit(FREE, 9), Limit(CONSUMED, 15))
    assert (policy().soft_limit(used(12)), policy().hard_limit(used(12))) == (None, None)
    strict = policy(Limit(CONSUMED, 1), Limit(CONSUMED, 2))
    published = used(12, soft=Limit(CONSUMED, 10), hard=Limit(CONSUMED, 15))
    assert [strict.quota_factor(each) for each in (published, replace(published, hard=None))] == [0.6, 0.0]


# ---- setpoint ----

MB, GB = 10**6, 10**9
SOFT, HARD, CAPACITY = 800 * GB, 900 * GB, 1000 * GB
DRAIN = 20 * MB


def setpoint(clock: Callable[[], float], scope: str = "cluster", **section: Any) -> Setpoint:
    soft, hard = (Limit(CONSUMED, level) for level in (SOFT, HARD))
    return Setpoint(limited("setpoint", soft, hard, Setpoint.Section(**section), scope), clock)


def filled(consumed: float, name: str = "/data") -> Volume:
    return Volume("1", name, CAPACITY, max(0, int(consumed)))


def loop(demand: float, drain: float, every: int, hours: float, **more: Any) -> scenes.Course:
    """Play ``setpoint`` with a disk, from which ``drain`` bytes/s go in lumps; ``more`` are the disk's arguments."""
    return scenes.play("setpoint", hours, Disk(demand, drain=drain, every=every, **more))


# ---- in a closed loop ------------------------------------------------------------------------------


@pytest.mark.parametrize("overload", [1.5, 5, 40])
def test_whatever_the_load_it_rests_near_the_middle_and_lets_in_what_is_deleted(overload: float) -> None:
    course = loop(overload * DRAIN, DRAIN, 75, hours=2.5)
    factors, places = course.factors[HOUR:], course.places[0][HOUR:]
    assert fmean(factors) == pytest.approx(1 / overload, rel=0.05)
    assert deviation(factors) < 0.1
    assert 0.4 < fmean(places) < 0.65
    assert pauses(course.factors[60:]) <= 1, "at most one PAUSE, when the band first fills, in 12 s"


def test_if_nothing_is_deleted_it_is_let_in_ever_slower_until_deletions_begin() -> None:
    lumps = tuple((at, 60 * DRAIN) for at in range(4 * HOUR, 6 * HOUR, 60))
    course = loop(5 * DRAIN, 0, 1, hours=5.5, cleanups=lumps)
    before = course.factors[: 4 * HOUR]
    assert 0 < before[-1] < before[2 * HOUR] < before[HOUR] < 0.01
    assert 0.9 < course.places[0][2 * HOUR] < course.places[0][4 * HOUR - 60] < 0.995, "the volume never reaches hard"
    assert min(before) > 0, "producers never stop"
    assert fmean(course.factors[4 * HOUR + 1200 : 4 * HOUR + 1800]) > 0.1, "producers use freed space within minutes"
    assert fmean(course.factors[-HOUR // 2 :]) == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize("place", [0.1, 0.7, 0.95])
def test_a_volume_that_does_not_fill_is_not_throttled_but_close_to_hard(place: float) -> None:
    course = loop(0, 0, 1, hours=1, place=place)
    assert course.factors[-1] == pytest.approx(1.0 if place < 0.9 else 0.05, abs=0.01)


def test_a_reassignment_that_fills_at_factor_0_does_not_hold_the_factor_down_once_it_ends() -> None:
    ends = HOUR + 3000
    moved = ((HOUR, 1.25 * DRAIN), (ends, 0.0))
    course = loop(5 * DRAIN, DRAIN, 60, hours=3.5, others=moved)
    assert max(course.factors[HOUR + 1200 : ends]) == 0
    begins = next(at for at, factor in enumerate(course.factors) if at > ends and factor > 0)
    assert fmean(course.factors[begins + 60 : begins + 300]) > 0.05
    assert fmean(course.factors[3 * HOUR :]) == pytest.approx(0.2, rel=0.1)


def test_after_a_pause_producers_get_their_share_at_once() -> None:
    begins = 2 * HOUR
    others = ((begins, 25 * DRAIN), (begins + 20, 0.0))
    course = loop(2 * DRAIN, DRAIN, 75, hours=2.1, others=others, cleanups=((begins + 60, scenes.BAND),))
    assert set(course.factors[begins + 30 : begins + 58]) == {0.0}
    assert 0 < course.places[0][begins + 61] < 1
    assert course.factors[begins + 63] == pytest.approx(0.5, rel=0.3)


# ---- read by read ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["topics", "cluster"])
def test_a_factor_for_the_topics_of_other_volumes_is_not_taken_for_this_ones(scope: str) -> None:
    clock = Clock()
    told, expected = setpoint(clock, scope), setpoint(clock)
    answer = 1.0
    for minute in range(90):
        clock.now += 60
        told.factor_in_force(0.1)
        expected.factor_in_force(1.0 if answer == 1 and scope == "topics" else 0.1)
        consumed = SOFT + (minute - 60) * 3 * GB
        answer = expected.quota_factor(filled(consumed))
        assert told.quota_factor(filled(consumed)) == answer
    assert answer < 0.2


def test_the_memory_is_bounded_a_volume_takes_the_place_of_one_that_is_gone_and_those_beyond_it_get_the_ramp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_VOLUMES", 2)
    clock = Clock()
    policy = setpoint(clock)
    for names in (["/gone", "/stays"], ["/stays"], *[["/stays", "/new", "/beyond"]] * 2):
        for name in names:
            policy.quota_factor(filled(850 * GB, name))
        clock.now += 700  # twice this is more than the memory of 20 minutes
    assert [name for _, name in policy._histories] == ["/stays", "/new"]
    assert policy.quota_factor(filled(870 * GB, "/beyond")) == 0.3


def test_a_new_memory_is_used_from_then_on() -> None:
    def after(memory: timedelta) -> float:
        clock = Clock()
        policy = setpoint(clock)
        for minute in range(60):
            if minute == 20:
                policy.reconfigure(Setpoint.Section(memory=memory))
            policy.factor_in_force(1.0)
            policy.quota_factor(filled(SOFT + (minute % 10) * GB))
            clock.now += 60
        return policy.quota_factor(filled(SOFT + 30 * GB))

    assert after(timedelta(minutes=3)) != after(Setpoint.Section().memory)


READS = st.tuples(
    st.floats(0.001, 700) | st.just(0.25) | st.just(0.0), st.sampled_from("ab"), st.integers(SOFT - GB, HARD + GB),
    st.floats(2**-63, 1) | st.sampled_from([0.0, 1.0]),  # no ramp has a smaller factor above 0
)  # fmt: skip


@given(st.lists(READS, max_size=40))
@example([(0.25, "a", HARD, 0.0), (0.0, "a", SOFT + 1, 0.0)])  # no time between two looks
def test_whatever_happens_it_is_guarded_close_to_hard(reads: list[tuple[float, str, int, float]]) -> None:
    clock = Clock()
    policy = setpoint(clock)
    for passed, name, consumed, in_force in reads:
        clock.now += passed
        policy.factor_in_force(in_force)
        factor = policy.quota_factor(filled(consumed, name))
        assert 0.0 <= factor <= 1.0
        assert (factor == 0.0) == (consumed >= HARD)
        assert factor == 1.0 or consumed > SOFT
        if consumed >= HARD - (HARD - SOFT) // 10:
            assert factor <= max(0.0, (HARD - consumed) / (HARD - SOFT))
