"""The policy ``limits`` of proposal 035 lowers the factor from 1 at the soft limit to 0 at the hard limit.

It converts limits to bytes of the volume first, because limits of different types can only be compared as bytes.
"""

from quotahost.api import Context
from quotahost.base.background import LoggedOnce
from quotahost.base.text import printable
from quotahost.model import Limit, Volume
from quotahost.model.volumes import ByteLimits, byte_limits


class Limits:
    """A ramp from 1 at the soft limit to 0 at the hard limit.

    A volume's own published limits apply, else this broker's limits, ``static.storage.*``. If there are no limits, the
    factor is 1. If the hard limit is reached before the soft limit, only the hard limit applies.
    """

    def __init__(self, context: Context[object]) -> None:
        self._context = context
        self._contradiction = LoggedOnce(context.log)

    def quota_factor(self, volume: Volume) -> float:
        """1 at or below soft, 0 at or above hard. Example: with soft 10 and hard 15, consumed 12 gives 0.6."""
        in_force = self._bounds(volume)
        return 1.0 if in_force is None else in_force.ramp(volume.consumed)

    def soft_limit(self, volume: Volume) -> Limit | None:
        """The soft limit in force for the volume, or the hard limit if that is reached first."""
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
        """The limits in force in bytes of the volume. If they contradict each other, it logs the first such volume."""
        soft, hard = self._limits(volume)
        in_force = byte_limits(volume, soft, hard)
        if soft and hard and in_force and in_force.contradict:
            self._contradiction.report(
                "broker %s, volume %s: the hard limit %s is reached at %s bytes, before the soft limit %s at %s; "
                "only the hard limit applies until one of them is changed",
                printable(volume.broker), printable(volume.name),
                hard, f"{hard.consumed_at(volume.capacity):,}", soft, f"{soft.consumed_at(volume.capacity):,}",
            )  # fmt: skip
        return in_force
