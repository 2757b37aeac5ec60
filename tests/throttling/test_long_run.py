"""Mutations in the long run: how many pass by the three forms of KIP-599, and when the next one is admitted."""

import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.throttling import RevisionDiffRate, SpreadRate, TokenBucket, Version15Rate

NOW = 1_700_000_000_000
SAMPLES = st.integers(1, 30)
HOUR = 3_600_000
Form = TokenBucket | SpreadRate
FORMS: list[Callable[[float, int, int], Form]] = [TokenBucket, RevisionDiffRate, Version15Rate]
RATES: list[Callable[[float, int, int], SpreadRate]] = [RevisionDiffRate, Version15Rate]


def admitted(form: Form, mutations: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Time in ms since the start, and N, of each mutation that is admitted."""
    times = itertools.accumulate(step for _, step in mutations)
    tried = zip((n for n, _ in mutations), times, strict=True)
    return [(t, n) for n, t in tried if form.admit(n, NOW + t)]


@pytest.mark.proves("kip-599-revision.rate-form", "kip-599.even-spread")
def test_at_1000_every_100_s_both_rates_admit_twice_the_quota_and_more_and_the_token_bucket_keeps_to_it() -> None:
    """Why Kafka keeps the debt: 1000 at once, every 100 s, are 10 a second for a quota of 5."""
    tries = [(1000, 1000)] * (HOUR // 1000)
    buckets, diffs, v15s = (sum(n for _, n in admitted(form(5, 100, 1000), tries)) for form in FORMS)
    assert buckets <= 5 * 3600 + 500 + 1000
    assert diffs > 1.9 * 5 * 3600
    assert v15s > 3.8 * 5 * 3600


@pytest.mark.proves("kip-599.even-spread")
def test_for_one_mutation_at_a_time_version_15_alone_admits_nearly_twice_the_quota() -> None:
    tries = [(1, 50)] * (HOUR // 50)
    buckets, diffs, v15s = (sum(n for _, n in admitted(form(5, 100, 1000), tries)) for form in FORMS)
    assert max(buckets, diffs) <= 1.03 * 5 * 3600  # the burst is in it
    assert v15s >= 2 * 100 / 101 * 5 * 3600 * 0.999
    assert v15s <= 2 * 100 / 101 * 5 * 3600 * 1.03


@pytest.mark.proves("kip-599-revision.rate-wait", "kip-599.wait")
@given(st.integers(1, 20), SAMPLES, st.integers(0, 10_000))
def test_after_one_burst_all_forms_state_the_same_wait(quota: int, samples: int, beyond: int) -> None:
    bucket, rates = TokenBucket(quota, samples, 1000), [form(quota, samples, 1000) for form in RATES]
    forms: list[Form] = [bucket, *rates]
    for form in forms:
        form.admit(quota * samples + beyond, NOW)
    assert [rate.throttle_s(NOW) for rate in rates] == pytest.approx([beyond / quota] * 2)
    assert bucket.throttle_ms(NOW) == pytest.approx(beyond / quota * 1000, abs=1)


@pytest.mark.proves("kip-599-revision.rate-admits")
@given(st.integers(1, 20), SAMPLES, st.integers(1, 10_000))
def test_after_one_burst_the_diff_admits_with_the_first_whole_window_after_the_bucket_or_when_it_forgets(
    quota: int, samples: int, beyond: int
) -> None:
    bucket, diff = TokenBucket(quota, samples, 1000), RevisionDiffRate(quota, samples, 1000)
    for form in (bucket, diff):
        form.admit(quota * samples + beyond, NOW)
    windows = min(samples, math.ceil(beyond / quota))
    assert first_admitted(diff, samples) == windows
    assert bucket.admit(1, NOW + math.ceil(beyond / quota) * 1000)


def first_admitted(form: SpreadRate, samples: int) -> int:
    """How many whole windows after NOW the form first admits a mutation; NOW begins a window."""
    return next(k for k in range(samples + 1) if form.admit(1, NOW + k * 1000))
