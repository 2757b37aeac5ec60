"""Requests as ``quotahost simulate`` is given them: ``560@0``, ``15K@0..3/0.5``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from quotahost.properties_parse import parse_quantity

_SECONDS: Final = r"(\d+(?:\.\d+)?)"
_REQUEST: Final = re.compile(rf"([^@]+)@{_SECONDS}(?:\.\.{_SECONDS}/{_SECONDS})?")
_MOST: Final = 100_000


class Request(NamedTuple):
    """So many bytes or mutations, at a time in ms since the start."""

    amount: float
    ms: int


def parse_requests(text: str) -> list[Request]:
    """``AMOUNT@SECONDS`` is one request, ``AMOUNT@FROM..TO/STEP`` are many, the last at TO or before.

    Raises:
        ValueError: it is neither, or they are more than 100,000.
    """
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is no request; write AMOUNT@SECONDS or AMOUNT@FROM..TO/STEP, such as 15K@0..3/0.5"
        )
    amount = parse_quantity(match[1])
    start, stop, step = (round(float(s) * 1000) if s else 0 for s in match.groups()[1:])
    if match[3] is None:
        return [Request(amount, start)]
    if step < 1 or stop < start or (stop - start) // step >= _MOST:
        raise ValueError(
            f"{text!r} has no or too many requests; FROM must not exceed TO, and STEP be 0.001 or more"
        )
    return [Request(amount, ms) for ms in range(start, stop + 1, step)]
