"""Bytes, rates and times in an operator's words, for the page, the figures and the terminal alike.

Three digits are enough to look at. ``quotahost.units`` shows the same kinds of values exactly, as properties need it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from quotahost.report.values import Curve, Report, in_utc
from quotahost.text import printable

_UNKNOWN: Final = "\N{EN DASH}"
_YEAR: Final = 365 * 86400  # seconds
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_TIMES: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def show_bytes(count: float) -> str:
    """Three digits, in powers of 1000: ``3.42 TB``, ``950 MB``, ``0 B``."""
    size, unit = abs(count), 0
    # From 999.5 on, three digits would show 1000.
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = 0 if unit == 0 else max(0, 2 - len(str(int(size))) + 1)
    return f"{'-' if count < 0 else ''}{size:,.{digits}f} {_UNITS[unit]}"


def show_rate(rate: float | None) -> str:
    """``+1.25 MB/s``, ``-300 kB/s``, ``0``; a dash if it isn't known."""
    if rate is None:
        return _UNKNOWN
    if abs(rate) < 1:
        return "0"
    return f"{'+' if rate > 0 else ''}{show_bytes(rate)}/s"


def show_time(seconds: float | None) -> str:
    """Seconds until something in two units: ``3 d 4 h``; or ``reached``, ``in over a year``, ``not at this rate``."""
    if seconds is None:
        return "not at this rate"
    if seconds <= 0:
        return "reached"
    if seconds > _YEAR:
        return "in over a year"
    # "0 s" would say that it is reached already.
    return show_span(timedelta(seconds=max(1.0, seconds)))


def show_span(span: timedelta) -> str:
    """A span in its two largest units, rounded: ``3 d 4 h``; 90 s are ``1 min 30 s``."""
    for (unit, size), (finer, step) in zip(_TIMES, (*_TIMES[1:], ("", 1)), strict=True):
        # Rounded in the finer unit first: 59.9 s are 1 min, never 60 s.
        left = round(span.total_seconds() / step)
        if left * step >= size:
            whole, rest = divmod(left, size // step)
            return f"{whole} {unit}" + (f" {rest} {finer}" if rest else "")
    return "0 s"


def show_at(at: datetime) -> str:
    """A time in UTC as ``2026-11-21 21:30``."""
    return f"{at:%Y-%m-%d %H:%M}"


def show_share(share: float | None) -> str:
    """A share as ``93.4 %``; a dash if it isn't known."""
    return _UNKNOWN if share is None else f"{share * 100:.1f} %"


def show_when(curve: Curve, level: int | None) -> str:
    """When a level is reached: ``in 3 d 4 h (2026-11-25 01:30)``; ``no limit`` if there is none."""
    seconds = curve.seconds_to(level)
    if level is None:
        return "no limit"
    if seconds is None or not 0 < seconds <= _YEAR:
        return _unless_unknown(curve, seconds)
    return f"in {show_time(seconds)} ({show_at(in_utc(curve.newest.at + seconds))})"


def show_to_hard(curve: Curve) -> str:
    """Time to the hard limit, as a cell of the table."""
    hard = curve.newest.hard
    return "no limit" if hard is None else _unless_unknown(curve, curve.seconds_to(hard))


def _unless_unknown(curve: Curve, seconds: float | None) -> str:
    return "not known" if seconds is None and curve.fill_rate is None else show_time(seconds)


def title(curve: Curve, report: Report) -> str:
    """``broker 1: /dev/sdb``, after the cluster's name if the report is of several clusters."""
    cluster = f"{printable(curve.name.cluster)} / " if len(report.clusters) > 1 else ""
    return f"{cluster}broker {printable(curve.name.broker)}: {printable(curve.name.volume)}"


def clusters(report: Report) -> str:
    """The names of the report's clusters."""
    return ", ".join(map(printable, report.clusters))


def state(curve: Curve) -> str:
    """A volume's state by its limits now, as the policy ``limits`` sees it: ``hard``, ``soft`` or ``below``."""
    now = curve.newest
    # At the hard limit the factor is 0, while at the soft one it is still 1.
    if now.hard is not None and now.last >= now.hard:
        return "hard"
    return "soft" if now.soft is not None and now.last > now.soft else "below"


STATES: Final = {"hard": "at the hard limit", "soft": "above the soft limit", "below": ""}
