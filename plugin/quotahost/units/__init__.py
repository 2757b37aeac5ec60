"""Sizes, rates and durations as an operator writes them: types for the fields of a plugin's ``Section``.

Sizes and rates are plain numbers or carry K, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of
1024). Durations are ISO 8601 (``PT5M``) or a number with ms, s, m, h or d. The annotated types below
serve the broker's properties and the ``Section`` of any plugin alike.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

from quotahost.units.parse import (
    parse_count,
    parse_duration,
    parse_limit,
    parse_percent,
    parse_quantity,
    parse_share,
    parse_size,
)
from quotahost.units.show import (
    BYTES,
    BYTES_PER_SECOND,
    COUNT,
    DURATION,
    MUTATIONS_PER_SECOND,
    PERCENT,
    Unit,
    or_none,
    show_limit,
    show_number,
)

__all__ = [
    "Bytes",
    "BytesLimit",
    "BytesPerSecond",
    "Count",
    "Duration",
    "MutationsLimit",
    "PercentLimit",
    "Share",
    "Size",
]

Count = Annotated[int, BeforeValidator(parse_count), COUNT]
Duration = Annotated[timedelta, BeforeValidator(parse_duration), DURATION]
Bytes = Annotated[float, BeforeValidator(parse_quantity), BYTES]
Size = Annotated[
    int | None, BeforeValidator(parse_size), Unit("bytes", or_none(lambda value: show_limit(value, "bytes")))
]
Share = Annotated[
    float | None,
    BeforeValidator(parse_share),
    Unit("share of the capacity", or_none(lambda value: f"{show_number(value)} ({value:.3%})")),
]
BytesPerSecond = Annotated[float, BeforeValidator(parse_quantity), BYTES_PER_SECOND]
BytesLimit = Annotated[float | None, BeforeValidator(parse_limit), BYTES_PER_SECOND]
PercentLimit = Annotated[float | None, BeforeValidator(parse_percent), PERCENT]
MutationsLimit = Annotated[float | None, BeforeValidator(parse_limit), MUTATIONS_PER_SECOND]
