"""The one declaration from which a broker property is parsed, documented, shown and listed as live."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# TODO(merge) Plugins' own settings: names as properties, and which of them are secrets.


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, None if none is."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def printable(text: str) -> str:
    """The text, in quotes and escaped if it would break a line of a log or is very long."""
    text = text if len(text) <= 200 else text[:200] + "…"
    return text if text and text.isprintable() and text.strip() == text else repr(text)


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with each of the secrets hidden."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, "***") if secret else text
    return text
