"""The policy ``limits`` of proposal 035: a ramp from the soft limit to the hard one; limits that contradict are logged.

Limits are converted to bytes of the volume at hand first, because limits of different types can be compared only so.
"""

from quotahost.api import Context
from quotahost.base.background import LoggedOnce
from quotahost.base.text import printable
from quotahost.model import Limit, Volume
from quotahost.model.volumes import ByteLimits, byte_limits


class Limits:
    """A ramp from 1 at the soft limit to 0 at the hard limit.

    The limits of a volume are those published with it, else this broker's own, ``static.storage.*``. Without
    either the factor is 1. Where the hard limit is reached before the soft one, the hard one alone holds.
    """

    def __init__(self, context: Context[object]) -> None:
        self._context = context
        self._contradiction = LoggedOnce(context.log)

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard; soft 10, hard 15, consumed 12 is 0.6."""
        in_force = self._bounds(volume)
        return 1.0 if in_force is None else in_force.ramp(volume.consumed)

    def soft_limit(self, volume: Volume) -> Limit | None:
        """The soft limit in force for the volume: the hard one where that is reached before it."""
        soft, hard = self._limits(volume)
        in_force = byte_limits(volume, soft, hard)
        return hard if in_force and in_force.contradict else soft

    def hard_limit(self, volume: Volume) -> Limit | None:
        return self._limits(volume)[1]

    def breaches_soft_limit(self, volume: Volume) -> bool:
        return bool((in_force := self._bounds(volume)) and in_force.breaches_soft(volume.consumed))

    def breaches_hard_limit(self, volume: Volume) -> bool:
        return bool((in_force := self._bounds(volume)) and in_force.breaches_hard(volume.consumed))

    def _limits(self, volume: Volume) -> tuple[Limit | None, Limit | None]:
        return self._context.settings.static.storage.limits_of(volume)

    def _bounds(self, volume: Volume) -> ByteLimits | None:
        """The limits in force for a volume, in bytes of it; of one volume it logs that they contradict each other."""
        soft, hard = self._limits(volume)
        in_force = byte_limits(volume, soft, hard)
        if soft and hard and in_force and in_force.contradict:
            self._contradiction.report(
                "broker %s, volume %s: the hard limit %s is reached at %s bytes, before the soft limit %s at %s; "
                "until one is changed, the hard limit alone holds",
                printable(volume.broker), printable(volume.name),
                hard, f"{hard.consumed_at(volume.capacity):,}", soft, f"{soft.consumed_at(volume.capacity):,}",
            )  # fmt: skip
        return in_force
