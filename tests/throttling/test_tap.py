"""The tap in Python is the broker's own, and does for a client what it is for, by Kafka's sampled rate."""

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quotahost.throttling import SampledRate, Tap, quota_window, rise
from tests.throttling.oracle import Oracle

#: A pace, and steps: factor, whether a fence holds it, ms since the step before.
Way = tuple[tuple[int, int, int], list[tuple[float, bool, int]]]
QUOTA = 4e6  # bytes/s
LINE = 50e6  # bytes/s of the network
BEAT = 200  # ms
PACE = st.tuples(st.integers(1, 60), st.sampled_from([0, 1, 100, 999, 1000, 5000]), st.integers(1, 10**7))
#: Some factors come again and again, so that values settle and ties come up.
FACTOR = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1.0, 0.5, 1e-5, 5e-324])
STEP = st.tuples(FACTOR, st.booleans(), st.sampled_from([0, 1, 99, 200, 200, 200, 1000, 40_000]))


@hypothesis_settings(max_examples=300)
@given(st.integers(-(10**15), 10**15), st.lists(st.tuples(PACE, st.lists(STEP, max_size=60)), min_size=1, max_size=4))
def test_the_taps_of_both_languages_are_equal_to_the_bit(oracle: Oracle, begin: int, ways: list[Way]) -> None:
    tap, now, lines, numbers = Tap(), begin, ["tap"], list[float]()
    for pace, steps in ways:
        tap.configure(*pace)
        lines.append("configure {} {} {}".format(*pace))
        for factor, held, later in steps:
            now += later
            lines.append(f"step {factor!r} {'held' if held else 'open'} {now}")
            numbers += [float(tap.step(factor, held, now)), tap.value]
    assert oracle.replay(lines) == numbers


@hypothesis_settings(max_examples=300)
@given(st.integers(0, 10**6), st.integers(1, 100), st.sampled_from([0, 1, 500, 1000, 10_000]))
def test_the_rise_of_one_client_is_the_same_too(oracle: Oracle, since: int, windows: int, window_ms: int) -> None:
    assert oracle.replay([f"rise {since} {windows} {window_ms}"]) == [rise(since, windows, window_ms)]


def test_the_mean_forgets_what_is_too_much_in_both(oracle: Oracle) -> None:
    tap = Tap(windows=60, window_ms=5000)
    steps = [(n % 100 / 100, n) for n in range(2000)]
    numbers = [number for factor, at in steps for number in (float(tap.step(factor, False, at)), tap.value)]

    lines = ["tap", "configure 60 5000 30000", *(f"step {factor!r} open {at}" for factor, at in steps)]
    assert oracle.replay(lines) == numbers


RECORDS = st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 4000)), min_size=1, max_size=60)


@hypothesis_settings(max_examples=300)
@given(RECORDS, st.integers(0, 5000), st.integers(1, 20), st.sampled_from([100, 1000, 5000]), st.floats(0, 3600))
def test_a_step_as_large_as_the_tap_takes_mutes_no_client_that_kept_to_the_limit_for_longer_than_max_mute(
    records: list[tuple[float, int]], pause: int, samples: int, window_ms: int, max_mute_s: float
) -> None:
    """Kafka mutes for (rate - bound) / bound x W, and doesn't unmute when a limit rises again."""
    rate, now = SampledRate(samples, window_ms), 1_700_000_000_000
    for value, step in records:
        now += step
        rate.record(value, now)
    now += pause
    limit = rate.measure(now)  # the client is as fast as its limit allows
    assume(limit > 1e-6)
    longest_s = quota_window({"quota.window.num": str(samples)}) * window_ms / 1000
    bound = limit * longest_s / (longest_s + max_mute_s)
    assert rate.window_size_ms(now) <= longest_s * 1000
    assert rate.throttle_ms(bound, now) <= max_mute_s * 1000 + 1


def sent(windows: int, batch: float, until_ms: int, pause: tuple[int, int], factor: float = 1.0) -> list[int]:
    """When an eager client's batches were appended, in ms; a fence holds a PAUSE, and the factor follows it."""
    rate, tap, now, beat, appended = SampledRate(windows, 1000), Tap(windows), 0, 0, list[int]()
    while now < until_ms:
        while beat <= now:
            held = pause[0] <= beat < pause[1]
            tap.step(0.0 if held else factor if beat >= pause[1] else 1.0, held, beat)
            beat += BEAT
        if pause[0] <= now < pause[1]:
            now = pause[1] + 20  # the client tries again
            continue
        now += max(1, round(batch / LINE * 1000))
        rate.record(batch, now)
        appended.append(now)
        now += rate.throttle_ms(QUOTA * tap.value, now)
    return appended


def after_a_pause(windows: int, batch: float) -> list[int]:
    """When batches were appended after a PAUSE of 30 s, in ms since the first of them."""
    times = [at for at in sent(windows, batch, 75_000, (30_000, 60_000)) if at >= 60_000]
    return [at - times[0] for at in times]


@pytest.mark.parametrize("batch", [64e3, 250e3, 1e6])
@pytest.mark.parametrize("windows", [2, 3, 5, 11])
def test_the_first_second_after_a_pause_is_no_burst(windows: int, batch: float) -> None:
    assert batch * sum(at < 1000 for at in after_a_pause(windows, batch)) <= 1.5 * QUOTA


@pytest.mark.parametrize("batch", [64e3, 250e3, 1e6])
def test_with_two_windows_the_quota_is_back_at_once(batch: float) -> None:
    times = after_a_pause(2, batch)

    assert batch * sum(at < 1000 for at in times) >= 0.9 * QUOTA
    assert batch * sum(at < 3000 for at in times) >= 0.9 * 3 * QUOTA


@pytest.mark.parametrize("batch", [64e3, 250e3])
@pytest.mark.parametrize("factor", [0.8, 0.5, 0.3])
def test_with_two_windows_a_fall_at_once_silences_nobody_for_two_seconds(factor: float, batch: float) -> None:
    times = sent(2, batch, 60_000, (30_000, 30_000), factor)

    assert max(after - before for before, after in itertools.pairwise(times)) <= 2_000


def test_what_a_client_sends_is_the_quota_times_the_factor_from_the_start() -> None:
    times = sent(2, 64e3, 60_000, (30_000, 30_000), 0.5)

    for begin in range(30_000, 55_000, 5_000):
        assert 64e3 * sum(begin <= at < begin + 5_000 for at in times) == pytest.approx(2.5 * QUOTA, rel=0.2)
