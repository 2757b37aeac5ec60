"""Both forms of KIP-599 in the long run: how many mutations pass, and when the next one is admitted."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quotahost.throttling.burst_rate import BurstRate
from quotahost.throttling.token_bucket import TokenBucket

NOW = 1_700_000_000_000
MUTATIONS = st.lists(st.tuples(st.integers(1, 400) | st.sampled_from([1, 5000]), st.integers(0, 30_000)), max_size=80)
QUOTAS = st.floats(0.1, 50) | st.integers(1, 20).map(float)
SAMPLES = st.integers(1, 30)


def admitted(form: TokenBucket | BurstRate, mutations: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Time in ms since the start, and N, of each mutation that is admitted."""
    times = itertools.accumulate(step for _, step in mutations)
    tried = zip((n for n, _ in mutations), times, strict=True)
    return [(t, n) for n, t in tried if form.admit(n, NOW + t)]


@hypothesis_settings(deadline=None, max_examples=500)
@given(MUTATIONS, QUOTAS, SAMPLES)
def test_the_token_bucket_admits_no_more_than_q_by_time_its_burst_and_the_last_request(
    mutations: list[tuple[int, int]], quota: float, samples: int
) -> None:
    total = 0
    for t, n in admitted(TokenBucket(quota, samples, 1000), mutations):
        assert total <= quota * (samples + t / 1000) + 1e-6
        total += n


@hypothesis_settings(deadline=None, max_examples=500)
@given(MUTATIONS, QUOTAS, SAMPLES)
def test_the_rate_form_admits_q_by_time_its_burst_and_for_every_s_windows_a_burst_and_a_request_more(
    mutations: list[tuple[int, int]], quota: float, samples: int
) -> None:
    passed = admitted(BurstRate(quota, samples, 1000), mutations)
    largest, total = max((n for n, _ in mutations), default=0), 0
    for t, n in passed:
        total += n
        windows = t // 1000 + 1
        rounds = windows // samples + 1
        assert total <= quota * (windows + samples) + rounds * (quota * samples + largest) + 1e-6


def test_the_rate_form_admits_twice_the_quota_where_the_token_bucket_keeps_to_it() -> None:
    """Why Kafka keeps the debt: 1000 at once, every 100 s, are 10 a second for a quota of 5."""
    hour = 3_600_000
    tries = [(1000, 1000)] * (hour // 1000)
    by_rate = sum(n for _, n in admitted(BurstRate(5, 100, 1000), tries))
    by_tokens = sum(n for _, n in admitted(TokenBucket(5, 100, 1000), tries))
    assert by_tokens <= 5 * 3600 + 500 + 1000
    assert by_rate > 1.9 * 5 * 3600


@hypothesis_settings(deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 100), st.integers(1, 10_000))
def test_the_token_buckets_throttle_time_is_exactly_when_the_next_is_admitted(
    quota: int, samples: int, debt: int
) -> None:
    def indebted() -> TokenBucket:
        bucket = TokenBucket(quota, samples, 1000)
        bucket.admit(quota * samples + debt, NOW)
        return bucket

    wait = indebted().throttle_ms(NOW)
    assert wait == debt * 1000 // quota
    assert not indebted().admit(1, NOW + wait - 1)
    assert indebted().admit(1, NOW + wait)


@hypothesis_settings(deadline=None)
@given(MUTATIONS, QUOTAS, SAMPLES)
def test_for_any_quota_the_throttle_time_is_exact_to_a_millisecond(
    mutations: list[tuple[int, int]], quota: float, samples: int
) -> None:
    bucket = TokenBucket(quota, samples, 1000)
    admitted(bucket, mutations)
    end = NOW + sum(step for _, step in mutations)
    wait = bucket.throttle_ms(end)
    if wait > 1:
        assert bucket.tokens(end + wait - 2) < 0
    assert bucket.tokens(end + wait + 1) >= 0


@hypothesis_settings(deadline=None)
@given(MUTATIONS, QUOTAS, SAMPLES)
def test_spreading_a_burst_keeps_its_sum(mutations: list[tuple[int, int]], quota: float, samples: int) -> None:
    rate, t = BurstRate(quota, samples, 1000), NOW
    for n, step in mutations:
        t += step
        before = sum(rate.windows(t))
        rate.record(n, t)
        assert math.isclose(sum(rate.windows(t)), before + n)
        assert all(held >= 0 for held in rate.windows(t))
