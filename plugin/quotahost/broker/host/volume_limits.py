"""Shows the factor of each of this broker's volumes, and its limits if the policy can be asked for them.

``judgement`` hands over the volumes whenever it has had them judged, so the policy is asked for limits no more often
than for factors. Each broker shows its own volumes, as it does with their sizes (``disks.monitor``): a cluster may have
thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from quotahost.api import LimitAware, QuotaPolicy
from quotahost.broker.host.exemptions import node_id
from quotahost.broker.host.guard import Failed, Guard
from quotahost.broker.host.shim import Shim
from quotahost.model import Limit, Volume
from quotahost.model.volumes import byte_limits

MOST: Final = 100  # volumes; a factor source such as prometheus may report any number of them
_ASKED: Final = "soft_limit(), hard_limit() or what says whether they are breached"
_SOFT, _HARD = 1.0, 2.0  # which limit is breached

Numbers = dict[str, float]


class VolumeLimits:
    """The numbers of this broker's volumes, those with the smallest factors if there are more than MOST.

    Attributes:
        broker: the id of this broker.
    """

    def __init__(self, shim: Shim, guard: Guard) -> None:
        self._shim, self._guard = shim, guard
        self._shown: dict[str, Numbers] = {}
        self.broker = str(node_id(shim.broker()))

    def show(self, policy: tuple[str, QuotaPolicy] | None, judged: Sequence[tuple[Volume, float]]) -> None:
        """Show these volumes of this broker with their factors, and no others."""
        worst = sorted(judged, key=lambda each: each[1])[:MOST]
        limits = self._limits(policy, [volume for volume, _ in worst])
        new = {volume.name: {"Factor": factor, **of} for (volume, factor), of in zip(worst, limits, strict=True)}
        for name in self._shown.keys() - new.keys():
            self._shim.forget("VolumeLimits", name)
        for name, numbers in new.items():
            self._replace(name, numbers)
        self._shown = new

    def _limits(self, policy: tuple[str, QuotaPolicy] | None, volumes: list[Volume]) -> list[Numbers]:
        """For each volume what the policy says of its limits; nothing if it can't be asked, or fails."""
        if policy is not None and volumes:
            name, plugin = policy
            ask = partial(_all_limits, plugin, volumes)
            answer = self._guard.call(name, _ASKED, "the metrics show no limits of volumes", ask)
            if not isinstance(answer, Failed):
                return answer
        return [{} for _ in volumes]

    def _replace(self, name: str, new: Numbers) -> None:
        old = self._shown.get(name, {})
        # A single number can't be taken away: the bean goes, and comes back with the numbers that are left.
        if old.keys() - new.keys():
            self._shim.forget("VolumeLimits", name)
            old = {}
        for attribute, value in new.items():
            if old.get(attribute) != value:
                self._shim.gauge("VolumeLimits", name, attribute, value)


def _all_limits(policy: QuotaPolicy, volumes: list[Volume]) -> list[Numbers]:
    return [limits(policy, volume) for volume in volumes] if isinstance(policy, LimitAware) else [{} for _ in volumes]


def limits(policy: LimitAware, volume: Volume) -> Numbers:
    """A volume's limits in bytes consumed, and which of them is breached, by the attributes of their metrics.

    Raises:
        TypeError: an answer of the policy is of another type than its role says.
    """
    soft, hard = policy.soft_limit(volume), policy.hard_limit(volume)
    breached = (policy.breaches_soft_limit(volume), policy.breaches_hard_limit(volume))
    for limit in (soft, hard):
        if not isinstance(limit, Limit | None):
            raise TypeError(f"a policy's limit must be a Limit or None, not {limit!r:.200}")
    for each in breached:
        if not isinstance(each, bool):
            raise TypeError(f"whether a limit is breached must be True or False, not {each!r:.200}")
    numbers = {"Breached": _HARD if breached[1] else _SOFT if breached[0] else 0.0}
    found = byte_limits(volume, soft, hard)
    return numbers if found is None else {"Soft": float(found.soft), "Hard": float(found.hard), **numbers}
