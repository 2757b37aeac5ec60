"""Sizes, rates and durations as ``doctor`` and ``quotahost properties`` show them: in full, with their unit.

Private; :mod:`quotahost.units` is public. Together with :mod:`quotahost.units.parse` it goes both ways: what is shown
here reads back there as the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from quotahost.units.parse import SCALES, UNLIMITED


@dataclass(frozen=True, slots=True)
class Unit:
    """What a property's value is counted in, and how it is shown in full."""

    name: str
    show: Callable[[Any], str]


def show_number(value: float) -> str:
    """All digits with thousands separators: ``10,000,000``, ``0.05``; the largest as Python writes them."""
    if not 1e-9 <= abs(value) < 1e18:
        return repr(value)
    # A float's own format "f" stops after six decimals, and would show 1e-8 as 0.
    text = f"{Decimal(repr(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shorthand(value: float) -> str:
    """The shortest exact ``10M``-style form, "" if there is none shorter than the plain number."""
    forms = [
        f"{value / scale:.0f}{unit}"
        for unit, scale in SCALES.items()
        # Only without a remainder: what is shown must read back as the same value.
        if unit and 1000 <= value < 1e18 and value % scale == 0
    ]
    return min(forms, key=len, default="")


def show_limit(value: float | None, unit: str) -> str:
    """``10,000,000 bytes/s (10M)``; None is ``unlimited``."""
    if value is None:
        return UNLIMITED
    short = shorthand(value)
    return f"{show_number(value)} {unit}" + (f" ({short})" if short else "")


def show_duration(value: timedelta) -> str:
    """``60 s``, ``0.5 s``, ``3,600 s (1h)``."""
    # Whole microseconds, since a float of seconds would show digits that nobody wrote.
    seconds = Decimal(value // timedelta(microseconds=1)) / 1_000_000
    text = f"{seconds:,f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    for unit, size in (("d", timedelta(days=1)), ("h", timedelta(hours=1))):
        if value and not value % size:
            return f"{text} s ({value // size}{unit})"
    return f"{text} s"


def _limit_unit(name: str) -> Unit:
    return Unit(name, lambda value: show_limit(value, name))


COUNT: Final = Unit("count", lambda value: f"{value:,}")
DURATION: Final = Unit("duration", show_duration)
BYTES: Final = _limit_unit("bytes")
BYTES_PER_SECOND: Final = _limit_unit("bytes/s")
PERCENT: Final = Unit("%", lambda value: UNLIMITED if value is None else f"{show_number(value)} %")
MUTATIONS_PER_SECOND: Final = _limit_unit("mutations/s")


def or_none(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """The same for a value that may be None, which is shown as the word that an operator writes for it."""
    return lambda value: "none" if value is None else show(value)
