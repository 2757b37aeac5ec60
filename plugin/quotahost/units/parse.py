"""These parsers read the sizes, rates, counts and durations that an operator writes.

Private; :mod:`quotahost.units` wraps the parsers in types. For an invalid text a parser raises a ValueError that says
what is wrong and what to write; pydantic adds the property's name.
"""

import math
import re
from datetime import timedelta
from decimal import Context, Decimal, localcontext
from functools import partial
from typing import Final

SCALES: Final = {
    "": 1,
    **{letter: 1000**n for n, letter in enumerate("KMGT", 1)},
    **{f"{letter}i": 1024**n for n, letter in enumerate("KMGT", 1)},
}
UNLIMITED: Final = "unlimited"
NONE: Final = "none"
MAX_COUNT: Final = 2**31 - 1  # Java's int
MAX_SIZE: Final = 2**63 - 1  # Java's long: brokers and the pipeline exchange sizes as longs
_MICRO: Final = 1_000_000  # microseconds in a second
_MIN_MICROSECONDS: Final = 1000
_MAX_DAYS: Final = 36500  # fits Java's long of nanoseconds, which overflows after 292 years
_MAX_MICROSECONDS: Final = _MAX_DAYS * 86400 * _MICRO
#: The units of a duration in microseconds.
_UNITS: Final = {"ms": 1000, "s": _MICRO, "m": 60 * _MICRO, "h": 3600 * _MICRO, "d": 86400 * _MICRO}
#: The quantifiers are possessive (``++``): backtracking would take time in the square of the number of digits.
_NUMBER: Final = r"(?:[0-9]++\.?[0-9]*+|\.[0-9]++)"
_QUANTITY: Final = re.compile(rf"([+-]?{_NUMBER}(?:[eE][+-]?[0-9]+)?)\s*(.*)", re.DOTALL)
_DURATION: Final = re.compile(rf"({_NUMBER})\s*(.*)", re.DOTALL)
# The lookaheads refuse "P" and "PT", which have no number.
_ISO: Final = re.compile(
    rf"P(?=[0-9T])(?:([0-9]++)D)?(?:T(?=[0-9])(?:([0-9]++)H)?(?:([0-9]++)M)?(?:({_NUMBER})S)?)?", re.IGNORECASE
)
_SIZE_REMEDY: Final = "write a plain number, or one with K, M, G, T (decimal) or Ki, Mi, Gi, Ti (binary), such as 10M"
_DURATION_REMEDY: Final = "write ISO 8601 such as PT5M, or a number with ms, s, m, h or d, such as 30s"


def _exact(number: str, scale: int | Decimal) -> Decimal:
    """The exact product: 0.1M is exactly 100000, which the product of floats may not be."""
    # The largest double has 309 digits; the decimal module's default of 28 digits would round it.
    with localcontext(Context(prec=400)):
        try:
            return Decimal(number) * scale
        # The decimal module can't represent 1e999999999.
        except ArithmeticError:
            raise ValueError(f"{number!r} is out of range; write a smaller number") from None


def parse_quantity(value: object) -> float:
    """A finite number above 0 from ``10M``, ``2Gi``, ``1.5K`` or ``250`` (numbers pass through)."""
    result = float(_quantity(value))
    if not math.isfinite(result) or result <= 0:
        raise ValueError(f"must be finite and above 0; {_SIZE_REMEDY}")
    return result


def _quantity(value: object) -> Decimal:
    """The exact number, of any sign and size."""
    text = _text(value)
    # float() would also accept nan, inf and 1_000.
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"is not a number; {_SIZE_REMEDY}")
    number, unit = match.groups()
    if unit not in SCALES:
        raise ValueError(f"has the unknown unit {unit!r}; {_SIZE_REMEDY}")
    return _exact(number, SCALES[unit])


def parse_limit(value: object) -> float | None:
    """Like :func:`parse_quantity`, but None and the word ``unlimited`` are None. An empty text is an error."""
    if value is None or _text(value) == UNLIMITED:
        return None
    if not _text(value):
        raise ValueError(f"is empty; write a rate such as 10M, or {UNLIMITED}")
    return parse_quantity(value)


def parse_percent(value: object) -> float | None:
    """A rate in percent of one thread's time (KIP-124); a ``%`` may follow the number."""
    return parse_limit(_text(value).removesuffix("%").rstrip() if isinstance(value, str) else value)


def parse_bytes(value: object, least: int = 0, instead: str = "0") -> int:
    """Whole bytes from texts such as ``10M``, rounded down. ``instead`` is the other valid text, for the error."""
    # parse_quantity returns a float, which keeps 53 bits of a size and turns the largest size into 2**63.
    size = _quantity(value)
    if size < least or 0 < size < 1:
        raise ValueError(f"must be at least one byte, or {instead}; {_SIZE_REMEDY}")
    if size > MAX_SIZE:
        raise ValueError(f"must be at most {MAX_SIZE} bytes (2^63 - 1), which no disk has; {_SIZE_REMEDY}")
    return int(size)


def _or_none(value: object, least: int, instead: str) -> int | None:
    return None if value is None or _text(value) == NONE else parse_bytes(value, least, instead)


#: Whole bytes, 1 to 2**63 - 1; the word ``none`` is None.
parse_size = partial(_or_none, least=1, instead=NONE)
#: Whole bytes, 0 to 2**63 - 1, because no byte may have to stay free; the word ``none`` is None.
parse_space = partial(_or_none, least=0, instead=f"0, or {NONE}")


def parse_share(value: object) -> float | None:
    """A share from ``0.05`` or ``5%``, 0 to 1; None or the word ``none`` is None."""
    if value is None or _text(value) == NONE:
        return None
    text = _text(value)
    number = text.removesuffix("%").rstrip()
    if not re.fullmatch(_NUMBER, number):
        raise ValueError("is not a share; write 0.05 or 5%")
    share = float(_exact(number, Decimal("0.01") if text.endswith("%") else 1))
    if share > 1:
        raise ValueError("must be from 0 to 1; write 0.05 or 5%")
    return share


def parse_count(value: object) -> int:
    """A whole number from 1 to 2,147,483,647 (Java's int); ``50K`` is 50000."""
    number = parse_quantity(value)
    if number != int(number) or number > MAX_COUNT:
        raise ValueError(f"must be a whole number from 1 to {MAX_COUNT:,}; write for example 50000")
    return int(number)


def parse_duration(value: object) -> timedelta:
    """A duration of 1 ms to 36500 days from ``PT5M``, ``30s``, ``500ms``, ``1.5h`` (timedeltas pass through)."""
    # Whole microseconds are exact; total_seconds() returns a float.
    microseconds = value // timedelta(microseconds=1) if isinstance(value, timedelta) else _microseconds(_text(value))
    if not _MIN_MICROSECONDS <= microseconds <= _MAX_MICROSECONDS:
        raise ValueError(f"must be from 1ms to {_MAX_DAYS}d; {_DURATION_REMEDY}")
    return timedelta(microseconds=microseconds)


def _microseconds(text: str) -> int:
    iso = _ISO.fullmatch(text)
    if iso is not None:
        scales = (86400, 3600, 60, 1)
        return sum(_whole(n, s * _MICRO) for n, s in zip(iso.groups(), scales, strict=True) if n)
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"is not a duration; {_DURATION_REMEDY}")
    number, unit = match.groups()
    if not unit:
        raise ValueError(f"has no unit; write {number}s for seconds or {number}ms for milliseconds")
    if unit not in _UNITS:
        raise ValueError(f"has the unknown unit {unit!r}; {_DURATION_REMEDY}")
    return _whole(number, _UNITS[unit])


def _whole(number: str, microseconds: int) -> int:
    # The number is bounded before int(), which takes seconds for 500,000 digits.
    return int(min(_exact(number, microseconds), Decimal(_MAX_MICROSECONDS + 1)))


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"is a {type(value).__name__}; {_SIZE_REMEDY}")
    return str(value).strip()
