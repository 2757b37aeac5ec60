"""The models give the numbers of Kafka's and yammer's own classes for the same records."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quotahost.throttling import SampledRate, TokenBucket
from tests.throttling.oracle import TICK_MS, EwmaMeter, Oracle

NOW = 1_700_000_000_000
Event = tuple[str, float, int]


def same(numbers: list[float]) -> object:
    return pytest.approx(numbers, rel=1e-9, abs=1e-300, nan_ok=True)


AMOUNTS = st.floats(0, 1e9) | st.integers(0, 10**6).map(float) | st.just(0.0)
BOUNDS = st.floats(1e-6, 1e9) | st.sampled_from([0.0, 1.0, 5e-324, 1e308])
DENSE = st.sampled_from([100, 400, 500, 999, 1000, 1100])  # so that all samples come into use
SPARSE = st.integers(0, 3000) | st.sampled_from([0, 1, 999, 1000, 1001, 9_999, 10_000, 11_000, 200_000])


def timed(kinds: list[str], values: st.SearchStrategy[float]) -> st.SearchStrategy[list[Event]]:
    """Events with times that never decrease."""

    def with_times(events: list[tuple[str, float, int]]) -> list[Event]:
        times = itertools.accumulate(step for _, _, step in events)
        return [(kind, value, NOW + t) for (kind, value, _), t in zip(events, times, strict=True)]

    def lists(steps: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[str, float, int]]]:
        return st.lists(st.tuples(st.sampled_from(kinds), values, steps), max_size=60)

    return (lists(DENSE) | lists(SPARSE)).map(with_times)


@pytest.mark.proves("kip-13.windows", "kip-13.delay")
@hypothesis_settings(max_examples=500)
@given(
    events=timed(["record", "record", "measure", "throttle"], AMOUNTS),
    bound=BOUNDS,
    samples=st.integers(1, 12),
    window_ms=st.sampled_from([1, 100, 1000, 1000, 30_000]),
)
@example([("record", 1e8, NOW), ("throttle", 0.0, NOW)], 1.0, 11, 1000)  # beyond an int: it wraps as in the broker
def test_a_sampled_rate_and_its_throttle_time_are_kafkas(
    oracle: Oracle, events: list[Event], bound: float, samples: int, window_ms: int
) -> None:
    model = SampledRate(samples, window_ms)
    lines, numbers = [f"rate {samples} {window_ms}"], []
    for kind, value, now in events:
        if kind == "record":
            model.record(value, now)
            lines.append(f"record {value!r} {now}")
        elif kind == "measure":
            numbers.append(model.measure(now))
            lines.append(f"measure {now}")
        else:
            numbers += [model.throttle_ms(bound, now, cast=False), model.throttle_ms(bound, now)]
            lines.append(f"throttle {bound!r} {now}")
    assert oracle.replay(lines) == same(numbers)


@pytest.mark.proves(
    "kip-599-revision.bucket", "kip-599-revision.bucket-config", "kip-599-revision.bucket-wait", "kip-599.even-spread"
)
@hypothesis_settings(max_examples=500)
@given(
    events=timed(["record", "measure", "debt"], AMOUNTS),
    quota=st.floats(1e-3, 1e6) | st.integers(1, 1000).map(float),
    samples=st.integers(1, 200),
    window_ms=st.sampled_from([1, 100, 1000, 30_000]),
)
@example([("record", 2001.0, NOW), ("debt", 0.0, NOW)], 2000.0, 1, 1000)  # half a millisecond, which Java rounds up
def test_a_token_bucket_and_its_throttle_time_are_kafkas(
    oracle: Oracle, events: list[Event], quota: float, samples: int, window_ms: int
) -> None:
    model = TokenBucket(quota, samples, window_ms)
    lines, numbers = [f"bucket {samples} {window_ms} {quota!r}"], []
    for kind, value, now in events:
        if kind == "record":
            model.record(value, now)
            lines.append(f"record {value!r} {now}")
        elif kind == "measure":
            numbers.append(model.tokens(now))
            lines.append(f"measure {now}")
        else:
            numbers.append(model.throttle_ms(now))
            lines.append(f"debt {now}")
    assert oracle.replay(lines) == same(numbers)


@pytest.mark.proves("v1.one-minute-rate", "v1.steady")
@hypothesis_settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.sampled_from(["mark", "mark", "rate"]), st.integers(0, 10**9), st.integers(0, 20_000)), max_size=60
    )
)
def test_a_one_minute_rate_is_yammers(oracle: Oracle, events: list[tuple[str, int, int]]) -> None:
    model = EwmaMeter(NOW)
    lines, numbers, ticked = ["ewma"], [], 0
    for (kind, n, _), passed in zip(events, itertools.accumulate(e[2] for e in events), strict=True):
        due = passed // TICK_MS
        lines += ["tick"] * (due - ticked)
        ticked = due
        if kind == "mark":
            model.mark(n, NOW + passed)
            lines.append(f"mark {n}")
        else:
            numbers.append(model.rate(NOW + passed))
            lines.append("ewma-rate")
    assert oracle.replay(lines) == same(numbers)
