r"""Lists of names with a rate each, in the form of KIP-13: ``clientA:4M,clientB:10M``; ``unlimited`` is None.

A backslash takes the next character as it is: ``\:`` and ``\,`` are part of a name, and so are ``\\`` and a blank at
its ends after one. Quotation marks around the whole list, as KIP-13 shows it, are dropped.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

from pydantic import BeforeValidator

from quotahost.units.parse import parse_limit

_FORM: Final = "write NAME:RATE, such as clientA:4M, entries separated by commas"
# A character, or a backslash and the character that it escapes; then a name without the blanks that are not escaped.
_UNIT: Final = re.compile(r"\\.|.", re.DOTALL)
_TRIMMED: Final = re.compile(r"\s*((?:\\.|.)*?)\s*", re.DOTALL)


def parse_list(value: object, read_name: Callable[[str, str], str]) -> dict[str, float | None]:
    """Rates by name; ``read_name`` makes the key of an entry's name and, for its errors, the quoted entry.

    Raises ValueError if an entry is ill-formed, or a name is there twice.
    """
    text = str(value).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    rates: dict[str, float | None] = {}
    for entry in _pieces(text, ",") if text.strip() else ():
        name, rate = _entry(entry, read_name)
        if name in rates:
            raise ValueError(f"has {name!r} twice; remove one of its entries")
        rates[name] = rate
    return rates


def _entry(entry: str, read_name: Callable[[str, str], str]) -> tuple[str, float | None]:
    quoted = repr(entry.strip())
    parts = _pieces(entry, ":")
    if not entry.strip():
        raise ValueError(f"has an empty entry; {_FORM}, one comma each")
    if len(parts) == 1:
        raise ValueError(f"has the entry {quoted} without a rate; {_FORM}")
    if len(parts) > 2:
        remedy = r"write \: for a colon in a name, and a comma between entries"
        raise ValueError(f"has the entry {quoted} with more than one colon; {remedy}")
    name = read_name(parts[0], quoted)
    try:
        return name, parse_limit(parts[1])
    except ValueError as wrong:
        raise ValueError(f"has the entry {quoted}, whose rate {wrong}") from None


def _name(text: str, quoted: str) -> str:
    if not (name := _plain(text)):
        raise ValueError(f"has the entry {quoted} without a name; {_FORM}; the nameless have the default")
    return name


def _pieces(text: str, separator: str) -> list[str]:
    """Split at the separators that no backslash stands before; backslashes stay."""
    pieces = [""]
    for unit in _UNIT.findall(text):
        if unit == separator:
            pieces.append("")
        else:
            pieces[-1] += unit
    return pieces


def _plain(text: str) -> str:
    """Without blanks around it and without its escapes."""
    trimmed = _TRIMMED.fullmatch(text)
    # The escapes go last: an escaped blank at an end must outlive the trimming.
    return re.sub(r"\\(.)", r"\1", trimmed[1] if trimmed else text, flags=re.DOTALL)


parse_rates = partial(parse_list, read_name=_name)
Rates = Annotated[dict[str, float | None], BeforeValidator(parse_rates)]
