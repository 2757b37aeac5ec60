"""Numbers, sizes, rates and times as quotahost shows them, in two ways.

``doctor`` and ``quotahost properties`` show properties in full, with their unit: together with
:mod:`quotahost.units.parse` that goes both ways, and what is shown here reads back there as the same value. What was
measured (``top``, ``explain``, ``simulate``, ``report``, ``replay``) is rounded to what is enough to look at.
Private; :mod:`quotahost.units` is public.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from quotahost.units.parse import NONE, SCALES, UNLIMITED


@dataclass(frozen=True, slots=True)
class Unit:
    """What a property's value is counted in, and how it is shown in full."""

    name: str
    show: Callable[[Any], str]


def show_number(value: float) -> str:
    """All digits with thousands separators: ``10,000,000``, ``0.05``; the largest as Python writes them."""
    if value and not 1e-9 <= abs(value) < 1e18:
        return repr(value)
    # A float's own format "f" stops after six decimals, and would show 1e-8 as 0.
    text = f"{Decimal(repr(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_digits(value: float, digits: int) -> str:
    """So many significant digits, without an exponent: ``0.4213``, ``1``."""
    return show_number(float(f"{value:.{digits}g}"))


def counted(value: float, what: str) -> str:
    """A number and what it counts, in the word's form for several or for one: ``2,000 bytes/s``, ``1 topic``."""
    return f"{show_number(value)} {what.replace('s', '', 1) if value == 1 else what}"


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
    return counted(value, unit) + (f" ({short})" if short else "")


def show_duration(value: timedelta) -> str:
    """``60 s``, ``0.5 s``, ``3,600 s (1h)``."""
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
    """Three digits, in powers of 1000: ``3.42 TB``, ``950 MB``, ``0 B``; two digits of what is less than 1."""
    size, scale = abs(value), 0
    # From 999.5 on, three digits would show 1000.
    while size >= 999.5 and scale < len(_SCALES) - 1:
        size, scale = size / 1000, scale + 1
    digits = 0 if not scale or size >= 99.95 else 1 if size >= 9.995 else 2
    # The largest quota would have 400 digits, which no table has room for.
    text = f"{size:.2g}" if not scale and 0 < size < 1 else f"{size:,.{digits}f}" if size < 1e9 else f"{size:.3g}"
    return f"{'-' if value < 0 else ''}{text} {_SCALES[scale]}{unit}"


def show_bytes(count: float) -> str:
    """``3.42 TB``."""
    return rounded(count, "B")


def show_rate(rate: float | None) -> str:
    """Growth in bytes/s: ``+1.25 MB/s``, ``-300 kB/s``, ``0``; a dash if it isn't known."""
    if rate is None:
        return UNKNOWN
    return "0" if abs(rate) < 1 else f"{'+' if rate > 0 else ''}{rounded(rate, 'B/s')}"


def show_time(seconds: float | None) -> str:
    """When something is reached, by seconds: ``in 3 d 4 h``, ``reached``, ``in over a year``, ``not at this rate``."""
    if seconds is None:
        return "not at this rate"
    if seconds <= 0:
        return "reached"
    if seconds > YEAR:
        return "in over a year"
    # "0 s" would say that it is reached already.
    return f"in {show_span(max(1.0, seconds))}"


def show_span(seconds: float) -> str:
    """Seconds in their two largest units, rounded: ``3 d 4 h``; 90 s are ``1 min 30 s``."""
    for (unit, size), (finer, step) in zip(_TIMES, (*_TIMES[1:], ("", 1)), strict=True):
        # Rounded in the finer unit first: 59.9 s are 1 min, never 60 s.
        left = round(seconds / step)
        if left * step >= size:
            whole, rest = divmod(left, size // step)
            return f"{whole} {unit}" + (f" {rest} {finer}" if rest else "")
    return "0 s"


def show_at(at: float) -> str:
    """A time in seconds since 1970 as that of UTC: ``2026-11-21 21:30``."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


def show_seconds(seconds: float, decimals: int = 1) -> str:
    """``1.3 s``, ``12 s``."""
    return f"{show_number(round(seconds, decimals))} s"


def show_share(share: float | None) -> str:
    """A share as ``93.4 %``, of a quota of next to nothing ``5e+09 %``; a dash if it isn't known."""
    return UNKNOWN if share is None else f"{share * 100:{'.1f' if share < 1000 else '.3g'}} %"


def show_factor(factor: float) -> str:
    """Four digits: ``0.4213``, ``1``."""
    return show_digits(factor, 4)
