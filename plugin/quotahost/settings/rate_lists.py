r"""Lists of names with a rate each, in the form of KIP-13: ``clientA:4M,clientB:10M``; ``unlimited`` is None.

A backslash takes the next character as it is: ``\:`` and ``\,`` are part of a name, and so are ``\\`` and a blank at
its ends after one. Quotation marks around the whole list, as KIP-13 shows it, are dropped.
"""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator

from quotahost.units.parse import parse_limit

_FORM: Final = r"write NAME:RATE, such as clientA:4M, with a comma between entries, and \: and \, in a name"
_ENTRY: Final = re.compile(r"\s*((?:\\.|[^\\:,])+?)\s*:([^:,]*)(?:,|$)", re.DOTALL)


def parse_rates(value: object) -> dict[str, float | None]:
    """Rates by name. Raises ValueError if an entry is ill-formed, or a name is there twice."""
    text = str(value).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    rates: dict[str, float | None] = {}
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise ValueError(f"has {text[at:]!r:.200}, which begins with no name and rate; {_FORM}")
        name, at = re.sub(r"\\(.)", r"\1", entry[1], flags=re.DOTALL), entry.end()
        if name in rates:
            raise ValueError(f"has {name!r} twice; remove one of its entries")
        try:
            rates[name] = parse_limit(entry[2])
        except ValueError as wrong:
            raise ValueError(f"has {name!r}, whose rate {wrong}") from None
    return rates


Rates = Annotated[dict[str, float | None], BeforeValidator(parse_rates)]
