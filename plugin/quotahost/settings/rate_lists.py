r"""Lists of names with a rate each, in the form of KIP-13: ``clientA:4M,clientB:10M``; ``unlimited`` is None.

A backslash takes the next character as it is: ``\:`` and ``\,`` are part of a name, and so are ``\\`` and a blank at
its ends after one. Quotation marks around the whole list, as KIP-13 shows it, are dropped.
"""

import re
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from pydantic import BeforeValidator

from quotahost.units.parse import parse_limit

K = TypeVar("K")
_FORM: Final = r"write NAME:RATE, such as clientA:4M, with a comma between entries, and \: and \, in a name"
_ENTRY: Final = re.compile(r"\s*((?:\\.|[^\\:,])+?)\s*:([^:,]*)(?:,|$)", re.DOTALL)


def unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)


def parse_keyed_rates(value: object, key_of: Callable[[str], K]) -> dict[K, float | None]:
    """Rates by what ``key_of`` makes of a name with its backslashes.

    Raises ValueError if an entry is ill-formed, or a name is there twice.
    """
    text = str(value).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    rates: dict[K, float | None] = {}
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise ValueError(f"has {text[at:]!r:.200}, which begins with no name and rate; {_FORM}")
        key, name, at = key_of(entry[1]), unescaped(entry[1]), entry.end()
        if key in rates:
            raise ValueError(f"has {name!r} twice; remove one of its entries")
        try:
            rates[key] = parse_limit(entry[2])
        except ValueError as wrong:
            raise ValueError(f"has {name!r}, whose rate {wrong}") from None
    return rates


def parse_rates(value: object) -> dict[str, float | None]:
    """Rates by name. Raises ValueError as above."""
    return parse_keyed_rates(value, unescaped)


Rates = Annotated[dict[str, float | None], BeforeValidator(parse_rates)]
