"""The examples of KIP-13 and "Broker side quota (V1)", with the documents' own numbers."""

import math

import pytest

from quotahost.throttling import SampledRate, quota_window, simple_delay_s
from tests.reference.ewma import EwmaMeter

SECOND = 1000
NOW = 1_700_000_000_000
MB = 1_000_000


@pytest.mark.proves("kip-13.delay")
def test_kip_13_delays_a_producer_of_60_mb_in_a_window_of_50_for_2_s() -> None:
    assert simple_delay_s(5 * MB * 9 + 15 * MB, 50 * MB, 5 * MB) == 2
    assert simple_delay_s(50 * MB, 50 * MB, 5 * MB) == 0


@pytest.mark.proves("kip-13.delay")
@pytest.mark.parametrize(("into_the_second", "delay_ms"), [(0, 3000), (500, 2500), (999, 2001)])
@pytest.mark.parametrize("samples", [10, 11])
def test_kip_13s_producer_is_delayed_by_3_s_today_and_by_2_s_if_its_burst_ends_the_second(
    samples: int, into_the_second: int, delay_ms: int
) -> None:
    """Kafka divides by the time that has passed, of which the present second is only a part, whatever N is."""
    rate = SampledRate(samples, SECOND)
    for second in range(60):
        rate.record(5 * MB, NOW + second * SECOND)
    now = NOW + 60 * SECOND + into_the_second
    rate.record(15 * MB, now)
    assert rate.throttle_ms(5 * MB, now) == delay_ms


@pytest.mark.proves("kip-13.windows")
def test_kip_13s_windows_are_10_and_kafkas_reach_back_12_s_by_default() -> None:
    assert quota_window({}) == 12
    assert quota_window({"quota.window.num": "3", "quota.window.size.seconds": "2"}) == 8
    rate = SampledRate(11, SECOND)
    for ms in range(0, 30 * SECOND, 100):
        rate.record(1, NOW + ms)
    assert max(rate.window_size_ms(NOW + 29_900 + ms) for ms in range(SECOND)) in range(11_000, 12_001)


@pytest.mark.proves("v1.one-minute-rate")
def test_v1_a_meters_rate_is_the_mean_of_its_first_5_s_and_then_follows_by_the_minute() -> None:
    meter = EwmaMeter(NOW)
    meter.mark(500, NOW + 1)
    assert meter.rate(NOW + 4999) == 0
    assert meter.rate(NOW + 5000) == 100
    assert meter.rate(NOW + 65_000) == pytest.approx(100 / math.e)


@pytest.mark.proves("v1.steady")
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
