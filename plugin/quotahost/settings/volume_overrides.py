"""Limits of single volumes: ``static.storage.overrides`` (proposal 035, snapshot note 2).

An operator writes a volume's name or a log directory that lies on it; which volume that is, only the broker's disks
can tell. So :func:`parse_overrides` reads the text, and :func:`match` finds the volumes each time that the disks were
read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from quotahost.model import Limit, LimitType
from quotahost.model.limits import contradict
from quotahost.settings.types import split
from quotahost.text import nearest
from quotahost.units.parse import parse_share, parse_size, parse_space

# From the last part of a limit's property name to its side, its type and the parser of its level.
LEVELS: Final[dict[str, tuple[str, LimitType, Callable[[object], Any]]]] = {
    side + kind: (side, limit_type, parse)
    for side in ("soft", "hard")
    for kind, limit_type, parse in (
        ("", LimitType.CONSUMED_BYTES, parse_size),
        (".min-free-bytes", LimitType.MIN_FREE_BYTES, parse_space),
        (".min-free-percent", LimitType.MIN_FREE_PERCENTAGE, parse_share),
    )
}
_FORM: Final = "write /dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; /data/2 hard=5T"


@dataclass(frozen=True, slots=True)
class Override:
    """The limits of one volume in place of the broker's; None where the broker's applies.

    ``volume`` is a volume's name, or a log directory that lies on it.
    """

    volume: str
    soft: Limit | None = None
    hard: Limit | None = None

    def __str__(self) -> str:
        """As ``doctor`` shows it."""
        sides = (f"{side} {limit}" for side, limit in (("soft", self.soft), ("hard", self.hard)) if limit)
        return f"{self.volume}: {', '.join(sides)}"


def limit_of(limit_type: LimitType, level: float) -> Limit:
    """A limit from a property's value: bytes, or a share from 0 to 1."""
    if limit_type is LimitType.MIN_FREE_PERCENTAGE:
        level = float(Decimal(repr(level)) * 100)  # exactly: 0.07 * 100 is 7.000000000000001 in floats
    return Limit(limit_type, level)


def parse_overrides(value: object) -> tuple[Override, ...]:
    """The overrides in ``VOLUME LEVEL=SIZE ...; VOLUME ...``, levels as of ``static.storage``.

    Raises:
        ValueError: an entry is ill-formed, contradicts itself, or its volume or a side is there twice; it names the
            entry.
    """
    found: dict[str, Override] = {}
    for entry in filter(None, split(value, ";")):  # a ; at the end is no entry
        override = _parse(entry)
        # `is`: an entry that equals the first one stands there twice, too.
        if found.setdefault(_place(override.volume), override) is not override:
            raise ValueError(f"has {override.volume!r} twice; write its limits in one entry")
    return tuple(found.values())


def _place(name: str) -> str:
    """A name as it is compared: ``/data/1/`` is ``/data/1``."""
    return os.path.normpath(name)


def _parse(entry: str) -> Override:
    words = entry.split()
    first = next((i for i, word in enumerate(words) if "=" in word), len(words))
    # A mount point may contain spaces, so the name is everything before the first level.
    name, levels = " ".join(words[:first]), words[first:]
    if not name or not levels:
        raise ValueError(f"has the entry {entry!r} without {'a limit' if name else 'a volume'}; {_FORM}")
    limits: dict[str, Limit] = {}
    for level in levels:
        side, limit = _level(entry, level)
        if side in limits:
            raise ValueError(f"has two {side} limits in the entry {entry!r}; keep one")
        limits[side] = limit
    if problem := contradict(limits.get("soft"), limits.get("hard")):
        raise ValueError(f"has the entry {entry!r}: {problem}; let the hard limit be reached after the soft one")
    return Override(name, **limits)


def _level(entry: str, text: str) -> tuple[str, Limit]:
    key, equals, number = text.partition("=")
    if not equals or key not in LEVELS:
        like = nearest(key, LEVELS)
        hint = f"did you mean {like}?" if like else f"write one of {', '.join(LEVELS)}"
        raise ValueError(f"has {text!r} in the entry {entry!r}, which is no limit; {hint}")
    side, limit_type, parse = LEVELS[key]
    try:
        level = parse(number)
    except ValueError as error:
        raise ValueError(f"has {text!r} in the entry {entry!r}: {number!r} {error}") from None
    if level is None:
        # The parsers read the word none as None.
        raise ValueError(f"has {text!r} in the entry {entry!r}: a limit can't be taken away, only changed")
    return side, limit_of(limit_type, level)


@dataclass(frozen=True, slots=True)
class Matched:
    """The overrides by the names of the volumes that they apply to.

    Attributes:
        limits: soft and hard limit by volume.
        unmatched: names that no volume or log directory has.
        conflicts: sentences about sides that two entries set for one volume; the first applies.
    """

    limits: dict[str, tuple[Limit | None, Limit | None]]
    unmatched: tuple[str, ...]
    conflicts: tuple[str, ...]


def match(overrides: Sequence[Override], volumes: Sequence[str], places: Mapping[str, str]) -> Matched:
    """Which override applies to which volume.

    Args:
        overrides: as configured.
        volumes: the names of all volumes.
        places: for every log directory the name of its volume, "" where it is unknown.
    """
    names = {_place(directory): volume for directory, volume in places.items()}
    names |= {_place(volume): volume for volume in volumes}
    limits: dict[str, tuple[Limit | None, Limit | None]] = {}
    conflicts = []
    for each in overrides:
        volume = names.get(_place(each.volume))
        if not volume:
            continue
        soft, hard = limits.get(volume, (None, None))
        for side, later, first in (("soft", each.soft, soft), ("hard", each.hard, hard)):
            if later and first:
                conflicts.append(f"{each.volume} is the volume {volume}, whose {side} limit is set before: {first}")
        limits[volume] = (soft or each.soft, hard or each.hard)
    # A directory without a volume, as it is offline now, is a known name: its entry is no spelling mistake.
    unmatched = tuple(each.volume for each in overrides if _place(each.volume) not in names)
    return Matched(limits, unmatched, tuple(conflicts))
