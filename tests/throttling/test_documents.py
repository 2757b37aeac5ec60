"""The examples of KIP-13, "Broker side quota (V1)" and KIP-599, with the documents' own numbers.

KIP-599's example creates 7 topics of 80 partitions at a quota of 5 mutations/s over 100 s. The tests play its three
forms after one burst and in the long run.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.throttling import (
    RevisionDiffRate,
    SampledRate,
    TokenBucket,
    Version15Rate,
    quota_window,
    samples_of_burst,
)

SECOND = 1000
NOW = 1_700_000_000_000
MB = 1_000_000
BURST = 7 * 80
Make = Callable[..., Any]
FORMS: list[Make] = [TokenBucket, RevisionDiffRate, Version15Rate]


@pytest.mark.proves("kip-13.windows")
def test_kip_13s_windows_are_10_and_kafkas_reach_back_12_s_by_default() -> None:
    assert quota_window({}) == 12
    assert quota_window({"quota.window.num": "3", "quota.window.size.seconds": "2"}) == 8
    rate = SampledRate(11, SECOND)
    for ms in range(0, 30 * SECOND, 100):
        rate.record(1, NOW + ms)
    assert max(rate.window_size_ms(NOW + 29_900 + ms) for ms in range(SECOND)) in range(11_000, 12_001)


# ---- KIP-599 ----


@pytest.mark.proves("kip-599-revision.rate-form")
def test_the_diffs_rate_makes_99_samples_of_5_and_one_of_65() -> None:
    rate = RevisionDiffRate(5, 100, SECOND)
    assert rate.admit(3, NOW)
    assert rate.windows(NOW)[:2] == (3, 0), "a past window is filled up to the quota and not above"
    assert rate.admit(BURST - 3, NOW)
    assert rate.windows(NOW) == (5.0,) * 99 + (65.0,)
    assert rate.measure(NOW) == pytest.approx(5.6)


@pytest.mark.proves("kip-599.even-spread")
def test_version_15_makes_100_samples_of_5_6() -> None:
    rate = Version15Rate(5, 100, SECOND)
    assert rate.admit(BURST, NOW)
    assert rate.windows(NOW) == (5.6,) * 100
    assert rate.measure(NOW) == 5.6
    assert rate.admit(200, NOW + 60 * SECOND), "version 15 spreads the burst over all windows, on top of their values"
    assert rate.windows(NOW + 60 * SECOND) == pytest.approx((7.6,) * 40 + (2.0,) * 60)


@pytest.mark.proves("kip-599.strictly-below")
def test_version_15_refuses_at_the_quota_itself_for_a_wait_of_0_s_and_the_other_forms_admit() -> None:
    rate = Version15Rate(5, 100, SECOND)
    rate.admit(500, NOW)
    assert rate.measure(NOW) == 5
    assert not rate.admit(1, NOW)
    assert rate.throttle_s(NOW) == 0
    assert rate.admit(1, NOW + SECOND)
    for form in (TokenBucket(5, 100, SECOND), RevisionDiffRate(5, 100, SECOND)):
        form.admit(500, NOW)
        assert form.admit(1, NOW)


@pytest.mark.parametrize(
    ("rate", "burst", "samples"),
    [(5, 500, 100), (5, 501, 101), (5, 1, 1), (0.1, 0.7, 7), (0.1, 1.1, 11), (0.1, 0.3, 3)],
)
def test_nobody_has_less_than_a_burst_of_no_whole_number_of_samples(rate: float, burst: float, samples: int) -> None:
    assert samples_of_burst(rate, burst) == samples
    assert samples_of_burst(rate, burst, window_ms=100) in range(10 * samples - 9, 10 * samples + 1)
    form = Version15Rate(rate, samples, SECOND)
    assert form.admit(burst * 0.999, NOW)
    assert form.admit(1, NOW)


def test_kafkas_own_rate_does_not_fall_before_its_one_sample_is_100_s_old() -> None:
    """KIP-599's diff says the same; version 15 says 101 s."""
    rate = SampledRate(100, SECOND)
    rate.record(BURST, NOW)
    assert all(rate.measure(NOW + t * SECOND) > 5 for t in range(100))
    assert rate.measure(NOW + 100 * SECOND) == 0


def admitted_in_an_hour(each: int, every_ms: int) -> list[int]:
    """The mutations that each form admits at a quota of 5/s if ``each`` are tried every ``every_ms``."""
    times = range(NOW, NOW + 3600 * SECOND, every_ms)
    return [sum(each for at in times if form.admit(each, at)) for form in (make(5, 100, SECOND) for make in FORMS)]


@pytest.mark.proves("kip-599-revision.rate-form", "kip-599.even-spread")
def test_in_the_long_run_the_token_bucket_alone_keeps_to_the_quota() -> None:
    """Kafka keeps a debt for this reason: 1000 mutations at once every 100 s are 10/s at a quota of 5/s."""
    buckets, diffs, v15s = (admitted / (5 * 3600) for admitted in admitted_in_an_hour(1000, every_ms=1000))
    assert buckets <= 1 + 1500 / (5 * 3600), "the bucket admits the burst and one request besides the quota"
    assert (diffs > 1.9, v15s > 3.8) == (True, True)
    buckets, diffs, v15s = (admitted / (5 * 3600) for admitted in admitted_in_an_hour(1, every_ms=50))
    assert max(buckets, diffs) <= 1.03, "the bucket and the diff also admit the burst"
    assert 0.999 <= v15s / (2 * 100 / 101) <= 1.03


@pytest.mark.proves("kip-599-revision.rate-wait", "kip-599.wait", "kip-599-revision.rate-admits")
@given(st.integers(1, 20), st.integers(1, 30), st.integers(0, 10_000))
def test_after_a_burst_all_forms_state_one_wait_the_diff_admits_by_windows(
    quota: int, samples: int, beyond: int
) -> None:
    bucket, diff, v15 = (form(quota, samples, SECOND) for form in FORMS)
    for form in (bucket, diff, v15):
        form.admit(quota * samples + beyond, NOW)
    assert [diff.throttle_s(NOW), v15.throttle_s(NOW)] == pytest.approx([beyond / quota] * 2)
    assert bucket.throttle_ms(NOW) == pytest.approx(beyond / quota * 1000, abs=1)
    windows = math.ceil(beyond / quota)
    assert bucket.admit(1, NOW + windows * SECOND)
    first = next(whole for whole in range(samples + 1) if diff.admit(1, NOW + whole * SECOND))
    assert first == min(samples, windows)
