"""The examples of KIP-13, KIP-599 and "Broker side quota (V1)", with the documents' own numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from quotahost.throttling.burst_rate import BurstRate
from quotahost.throttling.sampled_rate import SampledRate, simple_delay_s
from quotahost.throttling.token_bucket import TokenBucket
from tests.reference.ewma import EwmaMeter

SECOND = 1000
NOW = 1_700_000_000_000
MB = 1_000_000
BURST = 7 * 80  # KIP-599: 7 topics of 80 partitions


def test_kip_13_delays_a_producer_of_60_mb_in_a_window_of_50_for_2_s() -> None:
    assert simple_delay_s(5 * MB * 9 + 15 * MB, 50 * MB, 5 * MB) == 2
    assert simple_delay_s(50 * MB, 50 * MB, 5 * MB) == 0


def test_kip_599_the_token_bucket_goes_to_minus_60_and_throttles_for_12_s() -> None:
    bucket = TokenBucket(5, 100, SECOND)
    assert bucket.burst == 500
    assert bucket.admit(BURST, NOW)
    assert bucket.tokens(NOW) == -60
    assert bucket.throttle_ms(NOW) == 12_000
    assert not bucket.admit(1, NOW + 11_999)
    assert bucket.admit(1, NOW + 12_000)


def test_kip_599_the_rate_form_makes_99_samples_of_5_and_one_of_65() -> None:
    rate = BurstRate(5, 100, SECOND)
    assert rate.admit(BURST, NOW)
    assert rate.windows(NOW) == (5.0,) * 99 + (65.0,)
    assert rate.measure(NOW) == pytest.approx(5.6)


def test_kip_599_a_past_window_is_filled_up_to_the_quota_and_not_above() -> None:
    rate = BurstRate(5, 100, SECOND)
    rate.admit(3, NOW)
    rate.admit(BURST - 3, NOW)
    assert rate.windows(NOW) == (5.0,) * 99 + (65.0,)


def test_kip_599_the_rate_form_throttles_for_12_s_and_discards_12_samples() -> None:
    rate = BurstRate(5, 100, SECOND)
    rate.admit(BURST, NOW)
    assert rate.throttle_s(NOW) == pytest.approx(12)
    assert not rate.admit(1, NOW + 11 * SECOND)
    assert rate.measure(NOW + 12 * SECOND) == 5
    assert rate.admit(1, NOW + 12 * SECOND)


def test_kip_599_kafkas_own_rate_does_not_fall_before_its_one_sample_is_100_s_old() -> None:
    rate = SampledRate(100, SECOND)
    rate.record(BURST, NOW)
    assert all(rate.measure(NOW + t * SECOND) > 5 for t in range(100))
    assert rate.measure(NOW + 100 * SECOND) == 0


def test_v1_a_meters_rate_is_the_mean_of_its_first_5_s_and_then_follows_by_the_minute() -> None:
    meter = EwmaMeter(NOW)
    meter.mark(500, NOW + 1)
    assert meter.rate(NOW + 4999) == 0
    assert meter.rate(NOW + 5000) == 100
    assert meter.rate(NOW + 65_000) == pytest.approx(100 / math.e)


@pytest.mark.parametrize(("times", "excess", "longest_s"), [(5, 0.1, 15), (10, 0.25, 35), (100, 2, 120)])
def test_v1_as_written_lets_a_greedy_topic_exceed_its_threshold_and_blocks_it_for_long(
    times: int, excess: float, longest_s: int
) -> None:
    """Why TopicQuotas.java carries the rate forward between ticks, and gives a topic credit."""
    meter, expected, step = EwmaMeter(NOW), 1000, 100
    appended, held, longest = 0, 0, 0
    for now in range(NOW, NOW + 3600 * SECOND, step):
        if meter.rate(now) > expected:  # recordQuota(), in a broker that is above its total
            held += step
        else:
            meter.mark(n := times * expected * step // SECOND, now)
            late = now >= NOW + 600 * SECOND  # by then the first burst is forgotten
            appended, held = appended + n * late, 0
            continue
        longest = max(longest, held if now >= NOW + 600 * SECOND else 0)
    assert appended / 3000 > (1 + excess) * expected
    assert longest >= longest_s * SECOND


@pytest.mark.parametrize("make", [SampledRate, lambda s, w: BurstRate(5, s, w)])
@pytest.mark.parametrize(("samples", "window_ms"), [(0, 1000), (10, 0), (-1, 1000)])
def test_a_window_without_samples_or_length_raises_an_error(make: Any, samples: int, window_ms: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        make(samples, window_ms)


def test_a_quota_of_0_raises_an_error_in_the_rate_form() -> None:
    with pytest.raises(ValueError, match="above 0"):
        BurstRate(0, 10, 1000)
