"""These functions format numbers, sizes, rates and times for people, in full or rounded.

``doctor`` and ``quotahost properties`` show properties in full, with their unit; :mod:`quotahost.units.parse` reads
such a text back as the same value. ``top``, ``explain``, ``simulate``, ``report`` and ``replay`` round what they have
measured. Private; :mod:`quotahost.units` is public.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from quotahost.units.parse import NONE, SCALES, UNLIMITED


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a property's value, and the function that formats the value in full."""

    name: str
    show: Callable[[Any], str]


def show_number(value: float) -> str:
    """All digits with thousands separators: ``10,000,000``, ``0.05``; from 1e18 on and below 1e-9 Python's repr."""
    if value and not 1e-9 <= abs(value) < 1e18:
        return repr(value)
    # The format "f" of a float has six decimals, and would show 1e-8 as 0.
    text = f"{Decimal(repr(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_digits(value: float, digits: int) -> str:
    """The value with ``digits`` significant digits, without an exponent: ``0.4213``, ``1``."""
    return show_number(float(f"{value:.{digits}g}"))


def counted(value: float, what: str) -> str:
    """A number and its noun, in the plural or the singular: ``2,000 bytes/s``, ``1 topic``. ``what`` is the plural."""
    return f"{show_number(value)} {what.replace('s', '', 1) if value == 1 else what}"


def shorthand(value: float) -> str:
    """The shortest exact form such as ``10M``; "" if no unit fits without a remainder."""
    forms = [
        f"{value / scale:.0f}{unit}"
        for unit, scale in SCALES.items()
        # A unit must leave no remainder, because the text must read back as the same value.
        if unit and 1000 <= value < 1e18 and value % scale == 0
    ]
    return min(forms, key=len, default="")


def show_limit(value: float | None, unit: str) -> str:
    """A limit in full: ``10,000,000 bytes/s (10M)``; None is ``unlimited``."""
    if value is None:
        return UNLIMITED
    short = shorthand(value)
    return counted(value, unit) + (f" ({short})" if short else "")


def show_duration(value: timedelta) -> str:
    """A duration in full: ``60 s``, ``0.5 s``, ``3,600 s (1h)``."""
    text = show_number(value.total_seconds())
    for unit, size in (("d", timedelta(days=1)), ("h", timedelta(hours=1))):
        if value and not value % size:
            return f"{text} s ({value // size}{unit})"
    return f"{text} s"


def _limit_unit(name: str, unlimited: str = UNLIMITED) -> Unit:
    return Unit(name, lambda value: unlimited if value is None else show_limit(value, name))


COUNT: Final = Unit("count", lambda value: f"{value:,}")
DURATION: Final = Unit("duration", show_duration)
BYTES: Final = _limit_unit("bytes")
SIZE: Final = _limit_unit("bytes", NONE)
SHARE: Final = Unit(
    "share of the capacity", lambda value: NONE if value is None else f"{show_number(value)} ({value:.3%})"
)
BYTES_PER_SECOND: Final = _limit_unit("bytes/s")
PERCENT: Final = Unit("%", lambda value: UNLIMITED if value is None else f"{show_number(value)} %")
MUTATIONS_PER_SECOND: Final = _limit_unit("mutations/s")


# ---- rounded: what was measured ----

UNKNOWN: Final = "\N{EN DASH}"
YEAR: Final = 365 * 86400  # seconds
_SCALES: Final = ("", "k", "M", "G", "T", "P", "E")
_TIMES: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def rounded(value: float, unit: str) -> str:
    """A number with three digits and a power of 1000: ``3.42 TB``, ``950 MB``, ``0 B``; below 1 with two digits."""
    size, scale = abs(value), 0
    # From 999.5 on, three digits would round to 1000.
    while size >= 999.5 and scale < len(_SCALES) - 1:
        size, scale = size / 1000, scale + 1
    digits = 0 if not scale or size >= 99.95 else 1 if size >= 9.995 else 2
    # The largest quota would have 400 digits, too many for a table.
    text = f"{size:.2g}" if not scale and 0 < size < 1 else f"{size:,.{digits}f}" if size < 1e9 else f"{size:.3g}"
    return f"{'-' if value < 0 else ''}{text} {_SCALES[scale]}{unit}"


def show_bytes(count: float) -> str:
    """Bytes, rounded: ``3.42 TB``."""
    return rounded(count, "B")


def show_rate(rate: float | None) -> str:
    """A growth in bytes/s: ``+1.25 MB/s``, ``-300 kB/s``, ``0``; a dash if the growth is unknown."""
    if rate is None:
        return UNKNOWN
    return "0" if abs(rate) < 1 else f"{'+' if rate > 0 else ''}{rounded(rate, 'B/s')}"


def show_time(seconds: float | None) -> str:
    """The time until a limit is reached: ``in 3 d 4 h``, ``reached``, ``in over a year``, ``not at this rate``."""
    if seconds is None:
        return "not at this rate"
    if seconds <= 0:
        return "reached"
    if seconds > YEAR:
        return "in over a year"
    # "0 s" would mean that the limit is reached.
    return f"in {show_span(max(1.0, seconds))}"


def show_span(seconds: float) -> str:
    """Seconds in their two largest units, rounded: ``3 d 4 h``; 90 s are ``1 min 30 s``."""
    for (unit, size), (finer, step) in zip(_TIMES, (*_TIMES[1:], ("", 1)), strict=True):
        # The seconds are rounded to the finer unit first: 59.9 s are 1 min, never 60 s.
        left = round(seconds / step)
        if left * step >= size:
            whole, rest = divmod(left, size // step)
            return f"{whole} {unit}" + (f" {rest} {finer}" if rest else "")
    return "0 s"


def show_at(at: float) -> str:
    """A time in seconds since 1970, shown in UTC: ``2026-11-21 21:30``."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


def show_seconds(seconds: float, decimals: int = 1) -> str:
    """Seconds, rounded: ``1.3 s``, ``12 s``."""
    return f"{show_number(round(seconds, decimals))} s"


def show_share(share: float | None) -> str:
    """A share as ``93.4 %``, a very large share as ``5e+09 %``; a dash if the share is unknown."""
    return UNKNOWN if share is None else f"{share * 100:{'.1f' if share < 1000 else '.3g'}} %"


def show_factor(factor: float) -> str:
    """A factor with four digits: ``0.4213``, ``1``."""
    return show_digits(factor, 4)
