"""How full is too full: ``static.storage.*``, by the names of proposal 035 ("Configuring the plugin").

A limit stands in one of three properties a side, by its type: bytes consumed, bytes free, share free.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Self

from pydantic import BeforeValidator, model_validator

from quotahost.model import Limit
from quotahost.model.limits import contradict
from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.volume_overrides import LEVELS, Override, limit_of, parse_overrides
from quotahost.units import Share, Size, Space
from quotahost.units.show import Unit

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
    """The same limit as bytes free; at 0 producers are not slowed before nothing is free."""
    soft_min_free_percent: Share = declare("static.storage.soft.min-free-percent")
    """The same limit as a free share of the capacity, 0.0 to 1.0."""
    hard: Size = declare("static.storage.hard")
    """Hard limit: bytes consumed of a volume at which quotahost stops producers."""
    hard_min_free_bytes: Space = declare("static.storage.hard.min-free-bytes")
    """The same limit as bytes free; 0 stops producers when nothing is free."""
    hard_min_free_percent: Share = declare("static.storage.hard.min-free-percent")
    """The same limit as a free share of the capacity, 0.0 to 1.0."""
    overrides: Overrides = declare("static.storage.overrides", default="")
    """Limits of single volumes in place of these: `/dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; /data/2
    hard=5T`. A volume goes by its name or by a log directory that lies on it; the side that an entry leaves out stays
    as above."""

    @model_validator(mode="after")
    def _one_each_and_in_order(self) -> Self:
        for side in ("soft", "hard"):
            names = list(self._limits(side))
            if len(names) > 1:
                raise ValueError(f"{' and '.join(names)} are both set; give one {side} limit")
        problem = contradict(self.soft_limit, self.hard_limit)
        if problem:
            raise ValueError(f"{problem}; let the hard limit be reached after the soft one")
        return self

    # Cached, because the policies ask for them once for each of up to 20,000 volumes. cached_property writes into
    # __dict__, past pydantic's frozen=True.

    @cached_property
    def soft_limit(self) -> Limit | None:
        """The soft limit of this broker's volumes, None if there is none."""
        return next(iter(self._limits("soft").values()), None)

    @cached_property
    def hard_limit(self) -> Limit | None:
        """The hard limit of this broker's volumes, None if there is none."""
        return next(iter(self._limits("hard").values()), None)

    @property
    def any_limit(self) -> bool:
        """Whether any volume may have a limit."""
        return bool(self.soft_limit or self.hard_limit or self.overrides)

    def _limits(self, side: str) -> dict[str, Limit]:
        """The limits of this side by the property that sets each."""
        return {
            f"static.storage.{key}": limit_of(limit_type, level)
            for key, (its_side, limit_type, _) in LEVELS.items()
            # The field of static.storage.soft.min-free-bytes is soft_min_free_bytes.
            if its_side == side and (level := getattr(self, re.sub("[.-]", "_", key))) is not None
        }
