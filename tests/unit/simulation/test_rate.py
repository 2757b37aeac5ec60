"""The lean rate is Kafka's: it mutes to the ms for as long as ``SampledRate``, which the tests compare with Kafka."""

from __future__ import annotations

import random

import pytest

from quotahost.simulation.rate import LeanRate
from quotahost.throttling import SampledRate


@pytest.mark.parametrize("seed", range(200))
def test_a_lean_rate_mutes_as_long_as_kafkas(seed: int) -> None:
    rnd = random.Random(seed)
    windows, window_ms = rnd.choice([1, 2, 3, 11]), rnd.choice([250, 1000])
    kafka, lean, now = SampledRate(windows, window_ms), LeanRate(windows, window_ms), rnd.randrange(5000)
    for _ in range(300):
        now += rnd.choice([0, 1, 3, 90, 400, window_ms, 2500, windows * window_ms, 30_000])
        size, bound = rnd.randrange(100_000), 10 ** rnd.uniform(2, 6)
        kafka.record(size, now)
        assert lean.record(size, bound, now) == kafka.throttle_ms(bound, now, cast=False)
