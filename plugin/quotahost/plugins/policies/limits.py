"""The policy ``limits``: the fuller a volume is between its soft and hard limit, the smaller the factor."""

from __future__ import annotations

from typing import ClassVar, Final

from quotahost.api import Context
from quotahost.model import Limit, Volume
from quotahost.plugins.policies.bounds import Bounds, bounds
from quotahost.text import printable

MAX_CONTRADICTIONS: Final = 1024


class Limits:
    """Proposal 035's quota policy: a ramp from 1 at the soft limit to 0 at the hard limit.

    The limits of a volume are those published with it, else this broker's own, ``static.storage.*``. Without
    either the factor is 1. Where the hard limit of a volume is reached before its soft one, the hard one alone
    holds, and this is logged once until it heals.

    Attributes:
        contradictions: broker and name of the volumes whose limits contradict each other now.
    """

    depends_on_time: ClassVar = False

    def __init__(self, context: Context[object]) -> None:
        """Read nothing yet: this broker's limits may change while it runs."""
        self._context = context
        self.contradictions: set[tuple[str, str]] = set()

    @property
    def soft_limit(self) -> Limit | None:
        """This broker's own soft limit (proposal 035, getSoftLimit)."""
        limit: Limit | None = self._context.settings.storage_soft
        return limit

    @property
    def hard_limit(self) -> Limit | None:
        """This broker's own hard limit (proposal 035, getHardLimit)."""
        limit: Limit | None = self._context.settings.storage_hard
        return limit

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard; soft 10, hard 15, consumed 12 is 0.6."""
        own = self.bounds(volume)
        return 1.0 if own is None else own.ramp(volume.consumed)

    def breaches_hard_limit(self, volume: Volume) -> bool:
        """Whether the factor is 0: the hard limit is reached, or the volume full where it has a soft one only."""
        own = self.bounds(volume)
        return own is not None and volume.consumed >= own.hard

    def breaches_soft_limit(self, volume: Volume) -> bool:
        """Whether the volume is beyond its soft limit, so that its factor is below 1."""
        own = self.bounds(volume)
        return own is not None and (volume.consumed > own.soft or volume.consumed >= own.hard)

    def bounds(self, volume: Volume) -> Bounds | None:
        """The limits that hold for a volume, in bytes of it; None without limits."""
        soft, hard = volume.soft or self.soft_limit, volume.hard or self.hard_limit
        found = bounds(volume, soft, hard)
        if found is not None and found.contradict:
            self._contradict(volume, soft, hard)
        else:
            self.contradictions.discard((volume.broker, volume.name))
        return found

    def _contradict(self, volume: Volume, soft: Limit | None, hard: Limit | None) -> None:
        where = (volume.broker, volume.name)
        if where in self.contradictions or len(self.contradictions) >= MAX_CONTRADICTIONS:
            return
        self.contradictions.add(where)
        assert soft is not None
        assert hard is not None
        self._context.log.warning(
            "broker %s, volume %s: the hard limit %s is reached at %s bytes, before the soft limit %s at %s; "
            "until one is changed, the hard limit alone holds",
            printable(volume.broker), printable(volume.name),
            hard, f"{hard.consumed_at(volume.capacity):,}", soft, f"{soft.consumed_at(volume.capacity):,}",
        )  # fmt: skip
