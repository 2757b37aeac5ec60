"""Sizes, rates and durations as an operator writes them, and back in full as ``doctor`` shows them.

Sizes and rates are plain numbers or carry K, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of
1024). Durations are ISO 8601 (``PT5M``) or a number with ms, s, m, h or d. The annotated types below
serve the broker's properties and the ``Settings`` model of any plugin alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from quotahost.units.parse import (
    SCALES,
    UNLIMITED,
    parse_count,
    parse_duration,
    parse_limit,
    parse_percent,
    parse_quantity,
    parse_share,
    parse_size,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """What a property's value is counted in, and how it is shown in full."""

    name: str
    show: Callable[[Any], str]


def show_number(value: float) -> str:
    """All digits with thousands separators: ``10,000,000``, ``0.05``; the largest as Python writes them."""
    if not 1e-9 <= abs(value) < 1e18:
        return repr(value)
    text = f"{Decimal(repr(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shorthand(value: float) -> str:
    """The shortest exact ``10M``-style form, "" if there is none shorter than the plain number."""
    forms = [
        f"{value / scale:.0f}{unit}"
        for unit, scale in SCALES.items()
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


def _or_none(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "none" if value is None else show(value)


Count = Annotated[int, BeforeValidator(parse_count), COUNT]
Duration = Annotated[timedelta, BeforeValidator(parse_duration), DURATION]
Bytes = Annotated[float, BeforeValidator(parse_quantity), BYTES]
Size = Annotated[
    int | None, BeforeValidator(parse_size), Unit("bytes", _or_none(lambda value: show_limit(value, "bytes")))
]
Share = Annotated[
    float | None,
    BeforeValidator(parse_share),
    Unit("share of the capacity", _or_none(lambda value: f"{show_number(value)} ({value:.3%})")),
]
BytesPerSecond = Annotated[float, BeforeValidator(parse_quantity), BYTES_PER_SECOND]
BytesLimit = Annotated[float | None, BeforeValidator(parse_limit), BYTES_PER_SECOND]
PercentLimit = Annotated[float | None, BeforeValidator(parse_percent), PERCENT]
MutationsLimit = Annotated[float | None, BeforeValidator(parse_limit), MUTATIONS_PER_SECOND]
