"""How full is too full: ``static.storage.*``, by the names of proposal 035 ("Configuring the plugin")."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, model_validator

from quotahost.model import Limit, LimitType
from quotahost.model.volumes import contradict
from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.volume_overrides import Override, limit_of, parse_overrides
from quotahost.units import Share, Size, Unit

_BYTES, _PERCENT = LimitType.MIN_FREE_BYTES, LimitType.MIN_FREE_PERCENTAGE
_KINDS = {"": LimitType.CONSUMED_BYTES, "_min_free_bytes": _BYTES, "_min_free_percent": _PERCENT}


Overrides = Annotated[
    tuple[Override, ...],
    BeforeValidator(parse_overrides),
    Unit("limits by volume, `;`-separated", lambda overrides: "; ".join(map(str, overrides)) or "none"),
]


class StorageSettings(Frozen):
    """The limits of this broker's volumes; at most one soft and one hard, of any two types."""

    soft: Size = declare(
        "static.storage.soft",
        "Soft limit: bytes consumed of a volume above which producers are slowed.",
        told="none",
    )
    soft_min_free_bytes: Size = declare(
        "static.storage.soft.min-free-bytes", "The same as bytes free below which they are.", told="none"
    )
    soft_min_free_percent: Share = declare(
        "static.storage.soft.min-free-percent",
        "The same as a share of the capacity, 0.0 to 1.0.",
        told="none",
    )
    hard: Size = declare(
        "static.storage.hard",
        "Hard limit: bytes consumed of a volume at which producers are stopped.",
        told="none",
    )
    hard_min_free_bytes: Size = declare(
        "static.storage.hard.min-free-bytes", "The same as bytes free below which they are.", told="none"
    )
    hard_min_free_percent: Share = declare(
        "static.storage.hard.min-free-percent",
        "The same as a share of the capacity, 0.0 to 1.0.",
        told="none",
    )

    overrides: Overrides = declare(
        "static.storage.overrides",
        "Limits of single volumes in place of these: `/dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; "
        "/data/2 hard=5T`. A volume goes by its name or by a log directory that lies on it; the side that an entry "
        "leaves out stays as above.",
        default="",
        told="",
    )

    @model_validator(mode="after")
    def _one_each_and_in_order(self) -> Self:
        for side in ("soft", "hard"):
            names = self._given(side)
            if len(names) > 1:
                raise ValueError(f"{' and '.join(names)} are both set; give one {side} limit")
        problem = contradict(self.limit("soft"), self.limit("hard"))
        if problem:
            raise ValueError(f"{problem}; let the hard limit be reached after the soft one")
        return self

    @property
    def any_limit(self) -> bool:
        """Whether any volume may have a limit."""
        return bool(self.limit("soft") or self.limit("hard") or self.overrides)

    def limit(self, side: str) -> Limit | None:
        """The ``soft`` or ``hard`` limit, None if there is none."""
        for name, kind in _KINDS.items():
            level = getattr(self, side + name)
            if level is not None:
                return limit_of(kind, level)
        return None

    def _given(self, side: str) -> list[str]:
        names = (side + name for name in _KINDS)
        return [
            f"static.storage.{name.replace('_min', '.min').replace('_', '-')}"
            for name in names
            if getattr(self, name) is not None
        ]
