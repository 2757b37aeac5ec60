"""Computes the numbers in tests/requirements by the models, so that no document states a number from memory."""

from functools import cache
from typing import Final

from quotahost.throttling import RevisionDiffRate, SampledRate, TokenBucket, Version15Rate, quota_window, simple_delay_s

SECOND: Final = 1000
NOW: Final = 1_700_000_000_000
MB: Final = 1_000_000
Q, SAMPLES, BURST = 5, 100, 7 * 80  # KIP-599: 5 mutations a second over 100 s, 7 topics of 80 partitions


@cache
def figures() -> dict[str, float]:
    """The numbers by their names in braces: seconds (``_s``), mutations, or a number without a unit."""
    return _kip_13() | _kip_599()


def _kip_13() -> dict[str, float]:
    return {
        "kip_13_delay_s": simple_delay_s((5 * 9 + 15) * MB, 50 * MB, 5 * MB),
        "kafka_delay_longest_s": _delay_s(0),
        "kafka_delay_shortest_s": _delay_s(SECOND - 1),
        "kafka_window_s": quota_window({}),
    }


def _delay_s(into_the_second_ms: int) -> float:
    """The delay of KIP-13's client under Kafka's defaults: 5 MB in each second, then 15 MB so far into the next one."""
    rate, last = SampledRate(11, SECOND), NOW + 60 * SECOND
    for now in range(NOW, last, SECOND):
        rate.record(5 * MB, now)
    rate.record(15 * MB, last + into_the_second_ms)
    return rate.throttle_ms(5 * MB, last + into_the_second_ms) / 1000


def _kip_599() -> dict[str, float]:
    bucket, default = TokenBucket(Q, SAMPLES, SECOND), TokenBucket(Q, 11, SECOND)
    diff, v15 = RevisionDiffRate(Q, SAMPLES, SECOND), Version15Rate(Q, SAMPLES, SECOND)
    for form in (bucket, default, diff, v15):
        form.admit(BURST, NOW)
    numbers = {
        "samples": SAMPLES,
        "bucket_debt": bucket.tokens(NOW),
        "bucket_wait_s": bucket.throttle_ms(NOW) / 1000,
        "default_burst": default.burst,
        "default_wait_s": default.throttle_ms(NOW) / 1000,
        "v15_wait_s": v15.throttle_s(NOW),
        "v15_long_run": 2 * SAMPLES / (SAMPLES + 1),
        "misplaced": BURST / SAMPLES - Q / Q * SAMPLES,
        "bucket_admits_s": _admits_s(bucket),
        "diff_admits_s": _admits_s(diff),
        "v15_admits_s": _admits_s(v15),
    }
    after = Version15Rate(Q, SAMPLES, SECOND)
    after.admit(BURST, NOW)
    return numbers | {"v15_rate": after.measure(NOW + int(numbers["v15_admits_s"]) * SECOND)}


def _admits_s(form: TokenBucket | RevisionDiffRate | Version15Rate) -> float:
    """The first whole second after which a mutation is admitted."""
    return next(s for s in range(1, 2 * SAMPLES) if form.admit(1, NOW + s * SECOND))
