"""The three forms of KIP-599 with the numbers of their own documents: 7 topics of 80 partitions, 5 a second, 100 s."""

from collections.abc import Callable
from typing import Any

import pytest

from quotahost.throttling import RevisionDiffRate, SampledRate, TokenBucket, Version15Rate, samples_of_burst

SECOND = 1000
NOW = 1_700_000_000_000
BURST = 7 * 80
Make = Callable[[float, int, int], Any]
RATES = pytest.mark.parametrize("make", [RevisionDiffRate, Version15Rate])


@pytest.mark.proves("kip-599-revision.bucket-example", "kip-599-revision.bucket-wait", "kip-599-revision.bucket-config")
def test_the_token_bucket_goes_to_minus_60_and_throttles_for_12_s() -> None:
    bucket = TokenBucket(5, 100, SECOND)
    assert bucket.burst == 500
    assert bucket.admit(BURST, NOW)
    assert bucket.tokens(NOW) == -60
    assert bucket.throttle_ms(NOW) == 12_000
    assert not bucket.admit(1, NOW + 11_999)
    assert bucket.admit(1, NOW + 12_000)


@pytest.mark.proves("kip-599-revision.rate-form")
def test_the_diffs_rate_makes_99_samples_of_5_and_one_of_65() -> None:
    rate = RevisionDiffRate(5, 100, SECOND)
    assert rate.admit(3, NOW)
    assert rate.windows(NOW)[:2] == (3, 0), "a past window is filled up to the quota and not above"
    assert rate.admit(BURST - 3, NOW)
    assert rate.windows(NOW) == (5.0,) * 99 + (65.0,)
    assert rate.measure(NOW) == pytest.approx(5.6)


@pytest.mark.proves("kip-599-revision.rate-admits", "kip-599-revision.rate-wait")
def test_the_diffs_rate_throttles_for_12_s_and_discards_12_samples() -> None:
    rate = RevisionDiffRate(5, 100, SECOND)
    rate.admit(BURST, NOW)
    assert rate.throttle_s(NOW) == pytest.approx(12)
    assert not rate.admit(1, NOW + 11 * SECOND)
    assert rate.measure(NOW + 12 * SECOND) == 5
    assert rate.admit(1, NOW + 12 * SECOND), "5 is the quota, and the diff admits at the quota"


@pytest.mark.proves("kip-599.even-spread")
def test_version_15_makes_100_samples_of_5_6() -> None:
    rate = Version15Rate(5, 100, SECOND)
    assert rate.admit(BURST, NOW)
    assert rate.windows(NOW) == (5.6,) * 100
    assert rate.measure(NOW) == 5.6


@pytest.mark.proves("kip-599.strictly-below")
def test_version_15_says_12_s_and_admits_after_11_as_4_984_is_below_the_quota() -> None:
    rate = Version15Rate(5, 100, SECOND)
    rate.admit(BURST, NOW)
    assert rate.throttle_s(NOW) == pytest.approx(12)
    assert rate.measure(NOW + 10 * SECOND) == pytest.approx(5.04)
    assert not rate.admit(1, NOW + 11 * SECOND - 1)
    assert rate.measure(NOW + 11 * SECOND) == pytest.approx(4.984)
    assert rate.measure(NOW + 12 * SECOND) == pytest.approx(4.928)
    assert rate.admit(1, NOW + 11 * SECOND)


@RATES
def test_windows_begin_at_multiples_of_their_length_so_the_first_may_pass_soon_after_a_burst(make: Make) -> None:
    early, late = make(5, 100, SECOND), make(5, 100, SECOND)
    early.admit(BURST, NOW)
    late.admit(BURST, NOW + 900)
    admitted = next(s for s in range(100) if early.admit(1, NOW + s * SECOND))
    assert not late.admit(1, NOW + admitted * SECOND - 1)
    assert late.admit(1, NOW + admitted * SECOND)


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


def test_version_15_spreads_a_second_burst_over_all_windows_on_top_of_what_they_hold() -> None:
    rate = Version15Rate(5, 100, SECOND)
    rate.admit(BURST, NOW)
    assert rate.admit(200, NOW + 60 * SECOND)
    assert rate.windows(NOW + 60 * SECOND) == pytest.approx((7.6,) * 40 + (2.0,) * 60)


@pytest.mark.proves("kip-599.burst-by-default")
def test_version_15s_burst_of_500_is_100_samples() -> None:
    assert samples_of_burst(5, 500) == 100
    assert samples_of_burst(5, 500, window_ms=500) == 200


@pytest.mark.parametrize(
    ("rate", "burst", "samples"), [(5, 501, 101), (5, 1, 1), (0.1, 0.7, 7), (0.1, 1.1, 11), (0.1, 0.3, 3)]
)
def test_nobody_has_less_than_the_burst_where_it_is_no_whole_number_of_samples(
    rate: float, burst: float, samples: int
) -> None:
    assert samples_of_burst(rate, burst) == samples
    form = Version15Rate(rate, samples, SECOND)
    assert form.admit(burst * 0.999, NOW)
    assert form.admit(1, NOW)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (5, 0), (float("nan"), 1), (5, float("inf")), (1e-308, 1e308)])
def test_a_burst_without_a_finite_number_of_samples_raises_an_error(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="above"):
        samples_of_burst(rate, burst)


def test_kafkas_own_rate_does_not_fall_before_its_one_sample_is_100_s_old() -> None:
    """As the diff says; version 15 says 101."""
    rate = SampledRate(100, SECOND)
    rate.record(BURST, NOW)
    assert all(rate.measure(NOW + t * SECOND) > 5 for t in range(100))
    assert rate.measure(NOW + 100 * SECOND) == 0


@pytest.mark.parametrize("make", [lambda _, *windows: SampledRate(*windows), RevisionDiffRate, Version15Rate])
@pytest.mark.parametrize(("samples", "window_ms"), [(0, 1000), (10, 0), (-1, 1000)])
def test_a_window_without_samples_or_length_raises_an_error(make: Make, samples: int, window_ms: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        make(5, samples, window_ms)


@RATES
@pytest.mark.parametrize("quota", [0, -1, float("nan")])
def test_a_quota_that_is_not_above_0_raises_an_error_in_both_rates(make: Make, quota: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        make(quota, 10, 1000)
