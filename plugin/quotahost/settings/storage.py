"""The limits of volumes: ``static.storage.*`` with its overrides; a limit that a volume's broker published wins.

The names are proposal 035's ("Configuring the plugin", snapshot note 2).

1. :class:`StorageSettings` declares a soft and a hard limit of this broker's volumes. Each of the two sides has three
   properties, one for each type of limit: bytes consumed, bytes free, share free.
2. ``static.storage.overrides`` has limits of single volumes. An operator writes a volume's name, or a log directory on
   the volume; only the broker's disks tell which volume that is. So :func:`parse_overrides` reads the text, and
   :func:`match` finds the volumes each time after the broker has read its disks.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, ValidationError, model_validator

from quotahost.model import Limit, LimitType, Volume
from quotahost.model.limits import exact
from quotahost.settings.declaration import Frozen, declare, reason
from quotahost.settings.types import split
from quotahost.units import Share, Size, Space
from quotahost.units.show import Unit

#: The limit's type, by the end of the property's name after ``soft`` or ``hard``.
_TYPES: Final = {
    "": LimitType.CONSUMED_BYTES,
    ".min-free-bytes": LimitType.MIN_FREE_BYTES,
    ".min-free-percent": LimitType.MIN_FREE_PERCENTAGE,
}
_LARGER: Final = 2**64  # bytes; every limit is smaller
_FORM: Final = "write /dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; /data/2 hard=5T"


@dataclass(frozen=True, slots=True)
class Override:
    """The limits of one volume, in place of the broker's; None if the broker's limit applies."""

    volume: str  # a volume's name, or a log directory that lies on it
    soft: Limit | None = None
    hard: Limit | None = None

    def __str__(self) -> str:
        sides = (f"{side} {limit}" for side, limit in (("soft", self.soft), ("hard", self.hard)) if limit)
        return f"{self.volume}: {', '.join(sides)}"


def parse_overrides(value: object) -> tuple[Override, ...]:
    """The overrides in a text ``VOLUME LEVEL=SIZE ...; VOLUME ...``, with the levels of ``static.storage``.

    Raises ValueError with the entry if an entry is ill-formed or contradicts itself, or has a volume or a side twice.
    """
    overrides: dict[str, Override] = {}
    for entry in filter(None, split(value, ";")):  # a ; at the end is no entry
        override = _parse(entry)
        # `is not`, because two equal entries are an error, too.
        if overrides.setdefault(_place(override.volume), override) is not override:
            raise ValueError(f"has {override.volume!r} twice; write its limits in one entry")
    return tuple(overrides.values())


def _place(name: str) -> str:
    """The form of a name for comparison: ``/data/1/`` is ``/data/1``; relative paths start where Kafka was started."""
    return os.path.abspath(name)  # noqa: PTH100


def _parse(entry: str) -> Override:
    words = entry.split()
    first = next((i for i, word in enumerate(words) if "=" in word), len(words))
    # A mount point may contain spaces, so the name is everything before the first level.
    name, levels = " ".join(words[:first]), [word.partition("=")[::2] for word in words[first:]]
    given = {_field(key): number for key, number in levels}
    if (
        not name
        or len(given) < max(1, len(levels))
        or not given.keys() <= StorageSettings.model_fields.keys() - {"overrides"}
    ):
        raise ValueError(f"has the entry {entry!r}, which is no volume with its limits; {_FORM}")
    try:
        # The rules are those of the broker's own limits.
        limits = StorageSettings.model_validate(given)
    except ValidationError as error:
        details = error.errors()[0]
        raise ValueError(f"has the entry {entry!r}: {' '.join([*map(str, details['loc']), reason(details)])}") from None
    if not limits.any_limit:  # the levels are the word none
        raise ValueError(f"has the entry {entry!r}: a limit can't be taken away, only changed")
    return Override(name, limits.soft_limit, limits.hard_limit)


def _field(key: str) -> str:
    """The name of a limit's field: static.storage.soft.min-free-bytes is the field soft_min_free_bytes."""
    return re.sub("[.-]", "_", key)


Overrides = Annotated[
    tuple[Override, ...],
    BeforeValidator(parse_overrides),
    Unit("limits by volume, `;`-separated", lambda overrides: "; ".join(map(str, overrides)) or "none"),
]


class StorageSettings(Frozen):
    """The limits of this broker's volumes; at most one soft and one hard, of any two types."""

    soft: Size = declare("static.storage.soft")
    """Soft limit: bytes consumed of a volume above which quotahost slows producers."""
    soft_min_free_bytes: Space = declare("static.storage.soft.min-free-bytes")
    """The soft limit as bytes free. With 0, producers are not slowed before nothing is free."""
    soft_min_free_percent: Share = declare("static.storage.soft.min-free-percent")
    """The soft limit as a free share of the capacity, 0.0 to 1.0."""
    hard: Size = declare("static.storage.hard")
    """Hard limit: bytes consumed of a volume at which quotahost stops producers."""
    hard_min_free_bytes: Space = declare("static.storage.hard.min-free-bytes")
    """The hard limit as bytes free. With 0, producers are stopped when nothing is free."""
    hard_min_free_percent: Share = declare("static.storage.hard.min-free-percent")
    """The hard limit as a free share of the capacity, 0.0 to 1.0."""
    overrides: Overrides = declare("static.storage.overrides", default="")
    """Limits of single volumes in place of these: `/dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; /data/2
    hard=5T`. Name a volume, or a log directory that lies on it. If an entry gives no soft or no hard limit, that limit
    above applies."""

    @model_validator(mode="after")
    def _one_each_and_in_order(self) -> Self:
        for side in ("soft", "hard"):
            names = list(self._limits(side))
            if len(names) > 1:
                raise ValueError(f"{' and '.join(names)} are both set; give one {side} limit")
        soft, hard = self.soft_limit, self.hard_limit
        # Limits of different types contradict each other only on volumes of some sizes; the policy finds these volumes.
        if soft and hard and soft.type is hard.type and hard.consumed_at(_LARGER) < soft.consumed_at(_LARGER):
            wrong = f"the hard limit {hard} is reached before the soft limit {soft}"
            raise ValueError(f"{wrong}; let the hard limit be reached after the soft one")
        return self

    # Cached, because the policies read the limits once for each of up to 20,000 volumes. cached_property writes into
    # __dict__, which pydantic's frozen=True doesn't prevent.

    @cached_property
    def soft_limit(self) -> Limit | None:
        return next(iter(self._limits("soft").values()), None)

    @cached_property
    def hard_limit(self) -> Limit | None:
        return next(iter(self._limits("hard").values()), None)

    @property
    def any_limit(self) -> bool:
        return bool(self.soft_limit or self.hard_limit or self.overrides)

    def limits_of(self, volume: Volume) -> tuple[Limit | None, Limit | None]:
        """The soft and the hard limit in force for a volume: for each side the published limit, else this broker's."""
        return volume.soft or self.soft_limit, volume.hard or self.hard_limit

    def _limits(self, side: str) -> dict[str, Limit]:
        limits: dict[str, Limit] = {}
        for kind, limit_type in _TYPES.items():
            if (level := getattr(self, _field(side + kind))) is not None:
                # 0.07 * 100 is 7.000000000000001 in floats.
                level = float(exact(level) * 100) if limit_type is LimitType.MIN_FREE_PERCENTAGE else level
                limits[f"static.storage.{side}{kind}"] = Limit(limit_type, level)
        return limits


# ---- which volume an override is for ----


@dataclass(frozen=True, slots=True)
class Matched:
    """The overrides by the names of the volumes that they apply to."""

    limits: dict[str, tuple[Limit | None, Limit | None]]  # soft and hard limit by volume
    unmatched: tuple[str, ...]  # names that no volume or log directory has
    conflicts: tuple[str, ...]  # sentences about sides that two entries set for one volume; the first entry applies


def match(overrides: Sequence[Override], volumes: Sequence[str], places: Mapping[str, str]) -> Matched:
    """Find the volumes that the overrides apply to.

    ``places`` has the name of the volume for every log directory, "" if the volume is unknown.
    """
    names = {_place(directory): volume for directory, volume in places.items()}
    names |= {_place(volume): volume for volume in volumes}
    limits: dict[str, tuple[Limit | None, Limit | None]] = {}
    unmatched, conflicts = [], []
    for override in overrides:
        volume = names.get(_place(override.volume))
        if volume is None:
            unmatched.append(override.volume)
        elif volume:  # "" is a directory that is offline now: a known name, not a spelling mistake
            soft, hard = limits.get(volume, (None, None))
            for side, later, first in (("soft", override.soft, soft), ("hard", override.hard, hard)):
                if later and first:
                    words = f"{override.volume} is the volume {volume}, whose {side} limit was set before: {first}"
                    conflicts.append(words)
            limits[volume] = (soft or override.soft, hard or override.hard)
    return Matched(limits, tuple(unmatched), tuple(conflicts))
