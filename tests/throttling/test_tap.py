"""The tap in Python equals the broker's, and by Kafka's sampled rate its largest step mutes no client for too long."""

from hypothesis import assume, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quotahost.throttling import SampledRate, Tap, quota_window, rise
from tests.throttling.oracle import Oracle

#: A pace, and steps: the factor, whether a fence holds it, and the ms since the previous step.
Way = tuple[tuple[int, int, int], list[tuple[float, bool, int]]]
PACE = st.tuples(st.integers(1, 60), st.sampled_from([0, 1, 100, 999, 1000, 5000]), st.integers(1, 10**7))
#: Some factors are frequent, so that values settle and ties occur.
FACTOR = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 1.0, 0.5, 1e-5, 5e-324])
STEP = st.tuples(FACTOR, st.booleans(), st.sampled_from([0, 1, 99, 200, 200, 200, 1000, 40_000]))


@hypothesis_settings(max_examples=300)
@given(st.integers(-(10**15), 10**15), st.lists(st.tuples(PACE, st.lists(STEP, max_size=60)), min_size=1, max_size=4))
@example(0, [((60, 5000, 30_000), [(n % 100 / 100, False, 1) for n in range(2000)])])  # more factors than Tap's MOST
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


RECORDS = st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 4000)), min_size=1, max_size=60)


@hypothesis_settings(max_examples=300)
@given(RECORDS, st.integers(0, 5000), st.integers(1, 20), st.sampled_from([100, 1000, 5000]), st.floats(0, 3600))
def test_a_step_as_large_as_the_tap_takes_mutes_no_client_that_kept_to_the_limit_for_longer_than_max_mute(
    records: list[tuple[float, int]], pause: int, samples: int, window_ms: int, max_mute_s: float
) -> None:
    """Kafka mutes a client for (rate - bound) / bound x W, and doesn't unmute it when the limit rises again."""
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
