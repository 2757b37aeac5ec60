"""The policy ``limits``: the ramp between soft and hard, whatever types of limits make it."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotahost.broker.plugins.policies.limits import Limits
from quotahost.model import Limit, LimitType, Volume
from tests.fakes.plugin_context import limited

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
    """The consumption at the limit, with no rounding, at most the capacity."""
    if limit.type is CONSUMED:
        return Fraction(min(limit.level, capacity))
    free = limit.level if limit.type is FREE else Fraction(str(limit.level)) * capacity / 100
    return max(Fraction(0), Fraction(capacity - free))


@given(some_limits, some_limits, capacities, st.integers(0, 2**63 + 2**60), st.integers(0, 2**60))
@example(Limit(CONSUMED, 5), Limit(CONSUMED, 5), 10, 5, 0)
@example(Limit(PERCENT, 5), Limit(PERCENT, 5), 0, 0, 0)
def test_whatever_the_limits_the_factor_is_in_range_falls_and_fits_what_is_breached(
    soft: Limit | None, hard: Limit | None, capacity: int, consumed: int, more: int
) -> None:
    judge, volume = policy(soft, hard), used(consumed, capacity)
    factor, later = (judge.quota_factor(each) for each in (volume, used(consumed + more, capacity)))
    assert 0.0 <= later <= factor <= 1.0
    assert (judge.breaches_hard_limit(volume), judge.breaches_soft_limit(volume)) == (factor == 0, factor < 1)


@pytest.mark.proves("proposal-035.limit-types", "proposal-035.progressive")
@given(some_limits, some_limits, st.integers(10**6, 2**63 - 1), st.floats(0, 1.1))
def test_the_factor_is_the_exact_ramp(soft: Limit | None, hard: Limit | None, capacity: int, share: float) -> None:
    consumed = int(capacity * share)
    at_hard = capacity if hard is None else by_hand(hard, capacity)
    at_soft = at_hard if soft is None else min(at_hard, by_hand(soft, capacity))
    factor = policy(soft, hard).quota_factor(used(consumed, capacity))
    if soft is None and hard is None:
        assert factor == 1.0
    elif consumed >= at_hard:
        assert factor == 0.0
    elif at_hard - at_soft < 10**4:  # the rounding to whole bytes can be seen in so short a ramp
        assert 0.0 <= factor <= 1.0
    else:
        ramp = min(Fraction(1), (at_hard - consumed) / (at_hard - at_soft))
        assert factor == pytest.approx(float(ramp), abs=1e-3)


MIXED = (Limit(CONSUMED, 15), Limit(PERCENT, 50))  # contradict each other on a volume of 20, not of 40


def test_a_contradiction_is_logged_once_until_it_heals(caplog: pytest.LogCaptureFixture) -> None:
    judge = policy(*MIXED)
    for volume in (used(5), used(5), Volume("2\n", "/data", 20, 5)):
        judge.quota_factor(volume)
    assert caplog.messages == [
        "broker 1, volume /data: the hard limit MinFreePercentage 50 % is reached at 10 bytes, before the "
        "soft limit ConsumedBytes 15 bytes at 15; until one is changed, the hard limit alone holds"
    ]
    judge.quota_factor(used(5, capacity=40))
    judge.quota_factor(Volume("2\n", "/data", 20, 5))
    assert caplog.messages[1].startswith("broker '2\\n', volume /data: the hard limit")


OTHERS = Volume("2\n", "/data", 20, 12)


def test_a_limit_in_bytes_that_slows_for_another_brokers_disk_is_said(caplog: pytest.LogCaptureFixture) -> None:
    judge = policy(Limit(CONSUMED, 10))
    judge.quota_factor(replace(OTHERS, consumed=10))
    assert caplog.messages == [], "it slows nobody"
    for _ in range(2):
        judge.quota_factor(OTHERS)
    (line,) = caplog.messages
    assert "broker '2\\n' publishes no limits" in line
    caplog.clear()
    policy(Limit(PERCENT, 50)).quota_factor(OTHERS)
    own = policy(Limit(CONSUMED, 10))
    for volume in (replace(OTHERS, broker="1"), replace(OTHERS, hard=Limit(CONSUMED, 11))):
        own.quota_factor(volume)
    assert "publishes no limits" not in caplog.text, "any other limit is no news"


@pytest.mark.proves("proposal-035.policy-limits", "proposal-035.volume-limits", "proposal-035.limits-by-volume")
def test_a_volumes_own_limits_come_before_those_of_this_broker() -> None:
    judge = policy(Limit(CONSUMED, 10), Limit(CONSUMED, 15))
    own = used(12, soft=Limit(FREE, 9))
    assert (judge.soft_limit(own), judge.hard_limit(own)) == (Limit(FREE, 9), Limit(CONSUMED, 15))
    assert (policy().soft_limit(used(12)), policy().hard_limit(used(12))) == (None, None)
    strict = policy(Limit(CONSUMED, 1), Limit(CONSUMED, 2))
    published = used(12, soft=Limit(CONSUMED, 10), hard=Limit(CONSUMED, 15))
    assert [strict.quota_factor(each) for each in (published, replace(published, hard=None))] == [0.6, 0.0]
