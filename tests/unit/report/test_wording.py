"""How a report words bytes, rates and times, and when it expects a volume to reach its limits."""

from __future__ import annotations

import pytest

from quotahost.report.svg import sparkline
from quotahost.report.values import Bucket, Curve, Name
from quotahost.report.wording import show_bytes, show_rate, show_time, show_to_hard, show_when, state

HOUR = 3600.0
DAY = 24 * HOUR


def curve(consumed: int, rate: float | None, soft: int | None = 800, hard: int | None = 900) -> Curve:
    bucket = Bucket(1795296600.0, consumed, consumed, consumed, 1000, soft, hard)  # 2026-11-21 21:30
    return Curve(Name("c", "1", "/d"), (bucket,), rate)


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_999, "1.00 MB"), (3.42e12, "3.42 TB"), (9.5e8, "950 MB"),
     (45_600, "45.6 kB"), (2**63, "9.22 EB"), (-1500, "-1.50 kB")],
)  # fmt: skip
def test_bytes_have_three_digits(count: float, shown: str) -> None:
    assert show_bytes(count) == shown


@pytest.mark.parametrize(
    ("rate", "shown"), [(None, "\N{EN DASH}"), (0.4, "0"), (1_250_000, "+1.25 MB/s"), (-300_000, "-300 kB/s")]
)
def test_rates_have_a_sign(rate: float | None, shown: str) -> None:
    assert show_rate(rate) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "not at this rate"), (0, "reached"), (0.2, "1 s"), (90, "1 min 30 s"), (2 * HOUR, "2 h"), (3599.7, "1 h"),
     (2 * DAY - 5, "2 d"), (3 * DAY + 4 * HOUR, "3 d 4 h"), (400 * DAY, "in over a year")],
)  # fmt: skip
def test_times_are_shown_in_two_units(seconds: float | None, shown: str) -> None:
    assert show_time(seconds) == shown


def test_when_a_limit_is_reached_follows_from_the_fill_rate() -> None:
    fills = curve(540, 0.1)
    assert show_when(fills, fills.newest.hard) == "in 1 h (2026-11-21 22:30)"
    assert show_to_hard(fills) == "1 h"
    assert show_to_hard(curve(540, -0.1)) == "not at this rate"
    assert show_to_hard(curve(540, None)) == "not known"
    assert show_to_hard(curve(900, None)) == "reached"
    assert show_to_hard(curve(540, 0.1, hard=None)) == "no limit"


@pytest.mark.parametrize(("consumed", "expected"), [(800, "below"), (801, "soft"), (900, "hard"), (2000, "hard")])
def test_state_is_that_of_the_policy_at_the_limits(consumed: int, expected: str) -> None:
    assert state(curve(consumed, 0.0)) == expected


@pytest.mark.parametrize("consumed", [0, 1, 5000])
def test_a_single_reading_has_a_sparkline(consumed: int) -> None:
    assert "nan" not in str(sparkline(curve(consumed, None, None, None)))
