"""Lists of names with a rate each, in the form of KIP-13: ``clientA:4M,clientB:10M``."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator

from quotahost.properties_parse import parse_limit

_FORM: Final = "write NAME:RATE, such as clientA:4M, entries separated by commas"
_UNIT: Final = re.compile(r"\\.|.", re.DOTALL)
_TRIMMED: Final = re.compile(r"\s*((?:\\.|.)*?)\s*", re.DOTALL)


def parse_rates(value: object) -> dict[str, float | None]:
    r"""Rates by name; ``unlimited`` is None, an empty text is nobody.

    A backslash takes the next character as it is: ``\:`` and ``\,`` are part of a name, and so are ``\\`` and a blank
    at its ends after one. Quotation marks around the whole list, as KIP-13 shows it, are left out.

    Raises:
        ValueError: an entry is ill-formed, or a name is there twice; it names the entry and the remedy.
    """
    if isinstance(value, dict):
        return value
    text = str(value).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    rates: dict[str, float | None] = {}
    for entry in _pieces(text, ",") if text.strip() else ():
        name, rate = _entry(entry)
        if name in rates:
            raise ValueError(f"has {name!r} twice; remove one of its entries")
        rates[name] = rate
    return rates


def _entry(entry: str) -> tuple[str, float | None]:
    told = repr(entry.strip())
    parts = _pieces(entry, ":")
    if not entry.strip():
        raise ValueError(f"has an empty entry; {_FORM}, one comma each")
    if len(parts) == 1:
        raise ValueError(f"has the entry {told} without a rate; {_FORM}")
    if len(parts) > 2:
        raise ValueError(
            rf"has the entry {told} with more than one colon; write \: for a colon in a name, "
            r"and a comma between entries"
        )
    if not (name := _plain(parts[0])):
        raise ValueError(f"has the entry {told} without a name; {_FORM}; the nameless have the default")
    try:
        return name, parse_limit(parts[1])
    except ValueError as wrong:
        raise ValueError(f"has the entry {told}, whose rate {wrong}") from None


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
    return re.sub(r"\\(.)", r"\1", trimmed[1] if trimmed else text, flags=re.DOTALL)


Rates = Annotated[dict[str, float | None], BeforeValidator(parse_rates)]
