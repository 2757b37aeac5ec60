"""When a report expects a volume to reach its limits, and the state it is in."""

from __future__ import annotations

import pytest

from quotahost.cli.lab.curves import Bucket, Curve, Name
from quotahost.cli.lab.pages import sparkline


def curve(consumed: int, rate: float | None, soft: int | None = 800, hard: int | None = 900) -> Curve:
    bucket = Bucket(1795296600.0, consumed, consumed, consumed, 1000, soft, hard)  # 2026-11-21 21:30
    return Curve(Name("c", "1", "/d"), (bucket,), rate)


def to_hard(curve: Curve) -> str:
    return curve.show_time_to(curve.newest.hard)


def test_when_a_limit_is_reached_follows_from_the_fill_rate() -> None:
    fills = curve(540, 0.1)
    assert fills.show_when(fills.newest.hard) == "in 1 h (2026-11-21 22:30)"
    assert to_hard(fills) == "1 h"
    assert to_hard(curve(540, -0.1)) == "not at this rate"
    assert to_hard(curve(540, None)) == "not known"
    assert to_hard(curve(900, None)) == "reached"
    assert to_hard(curve(540, 0.1, hard=None)) == "no limit"


@pytest.mark.parametrize(("consumed", "expected"), [(800, "below"), (801, "soft"), (900, "hard"), (2000, "hard")])
def test_state_is_that_of_the_policy_at_the_limits(consumed: int, expected: str) -> None:
    assert curve(consumed, 0.0).state == expected


@pytest.mark.parametrize("consumed", [0, 1, 5000])
def test_a_single_reading_has_a_sparkline(consumed: int) -> None:
    assert "nan" not in str(sparkline(curve(consumed, None, None, None)))
