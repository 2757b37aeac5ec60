"""A limit that falls by one step mutes no client that kept to it for longer than ``max.mute``."""

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quotahost.throttling import SampledRate, quota_window
from tests.reference.mute import bound_after_step

NOW = 1_700_000_000_000
RECORDS = st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 4000)), min_size=1, max_size=60)


@hypothesis_settings(deadline=None, max_examples=500)
@given(RECORDS, st.integers(0, 5000), st.integers(1, 20), st.sampled_from([100, 1000, 5000]), st.floats(0, 3600))
def test_after_one_step_no_client_that_kept_to_the_limit_is_muted_for_longer(
    records: list[tuple[float, int]], pause: int, samples: int, window_ms: int, max_mute_s: float
) -> None:
    rate, now = SampledRate(samples, window_ms), NOW
    for value, step in records:
        now += step
        rate.record(value, now)
    now += pause
    q = rate.measure(now)  # the client is as fast as its limit allows
    assume(q > 1e-6)
    longest_s = quota_window({"quota.window.num": str(samples)}) * window_ms / 1000

    bound = bound_after_step(q, longest_s, max_mute_s)

    assert rate.window_size_ms(now) <= longest_s * 1000
    assert rate.throttle_ms(bound, now) <= max_mute_s * 1000 + 1


def test_the_step_is_as_large_as_it_may_be() -> None:
    rate = SampledRate(11, 1000)
    for second in range(12):
        rate.record(5_000_000, NOW + second * 1000)
    now = NOW + 11_999
    window_s = rate.window_size_ms(now) / 1000
    bound = bound_after_step(rate.measure(now), window_s, 30)
    assert rate.throttle_ms(bound, now) == pytest.approx(30_000, abs=1)
    assert rate.throttle_ms(bound * 0.99, now) > 30_300


def test_the_longest_window_is_that_of_the_brokers_samples_and_one_more() -> None:
    assert quota_window({}) == 12
    assert quota_window({"quota.window.num": "3", "quota.window.size.seconds": "2"}) == 8


def test_without_any_mute_allowed_the_limit_stays() -> None:
    assert bound_after_step(1000, 11, 0) == 1000


@pytest.mark.parametrize(("q", "window_s", "mute"), [(0, 11, 30), (1, 0, 30), (1, 11, -1), (float("nan"), 1, 1)])
def test_arguments_out_of_range_are_refused(q: float, window_s: float, mute: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        bound_after_step(q, window_s, mute)
