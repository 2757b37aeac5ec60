"""These types for fields of a plugin's ``Section`` parse sizes, rates and durations as operators write them. Public.

Sizes and rates are plain numbers, or numbers with K, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of 1024).
Durations are ISO 8601 (``PT5M``) or a number with ms, s, m, h or d. The broker's own properties use the same types.
Each type has a parser, whose errors say what to write (:mod:`quotahost.units.parse`), and a unit for the display in
``quotahost properties`` and ``doctor`` (:mod:`quotahost.units.show`). The modules of this package are private.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from quotahost.units import parse, show

__all__ = [
    "Bytes", "BytesLimit", "BytesPerSecond", "Count", "Duration", "MutationsLimit", "PercentLimit", "Share", "Size",
    "Space",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Read:
    """Makes pydantic parse a field with ``parse``. It imports pydantic, a slow import, only when a model needs it."""

    parse: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the core schema, as described in pydantic's documentation of custom types."""
        from pydantic import BeforeValidator

        return BeforeValidator(self.parse).__get_pydantic_core_schema__(source, handler)


# A whole number from 1 to 2**31 - 1.
Count = Annotated[int, Read(parse.parse_count), show.COUNT]
# A duration from 1 ms to 36500 days.
Duration = Annotated[timedelta, Read(parse.parse_duration), show.DURATION]
# Bytes above 0, which need not be whole.
Bytes = Annotated[float, Read(parse.parse_quantity), show.BYTES]
# Whole bytes from 1; the word ``none`` is None.
Size = Annotated[int | None, Read(parse.parse_size), show.SIZE]
# Whole bytes from 0, such as the bytes that must stay free; the word ``none`` is None.
Space = Annotated[int | None, Read(parse.parse_space), show.SIZE]
# A share from 0 to 1, written 0.05 or 5%; the word ``none`` is None.
Share = Annotated[float | None, Read(parse.parse_share), show.SHARE]
# Bytes/s above 0.
BytesPerSecond = Annotated[float, Read(parse.parse_quantity), show.BYTES_PER_SECOND]
# Bytes/s above 0; the word ``unlimited`` is None.
BytesLimit = Annotated[float | None, Read(parse.parse_limit), show.BYTES_PER_SECOND]
# Percent of one thread's time, above 0; the word ``unlimited`` is None.
PercentLimit = Annotated[float | None, Read(parse.parse_percent), show.PERCENT]
# Partition mutations/s, above 0; the word ``unlimited`` is None.
MutationsLimit = Annotated[float | None, Read(parse.parse_limit), show.MUTATIONS_PER_SECOND]
