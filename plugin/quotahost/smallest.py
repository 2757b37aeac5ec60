"""The policy asked for every volume: the smallest factor holds, also while it fails for some of them."""

from __future__ import annotations

from collections.abc import Iterable

from quotahost.api import QuotaPolicy
from quotahost.model import Factor, Volume
from quotahost.properties import printable


class Smallest:
    """The volume with the smallest factor among those that the policy can judge."""

    def __init__(self, policy: QuotaPolicy) -> None:
        """Nothing has been asked yet."""
        self._policy = policy
        self._least: tuple[float, Volume] | None = None

    def judge(self, volumes: Iterable[Volume]) -> None:
        """Ask for each; the first failure is raised when all have been asked."""
        failure: BaseException | None = None
        for volume in volumes:
            try:
                value = Factor(self._policy.quota_factor(volume)).value
            except BaseException as error:
                failure = failure or error
            else:
                if self._least is None or value < self._least[0]:
                    self._least = value, volume
        if failure is not None:
            raise failure

    def factor(self) -> Factor:
        """Of that volume; OPEN if there is none."""
        if self._least is None:
            return Factor(1.0)
        value, volume = self._least
        return Factor(value, f"broker {printable(volume.broker)}, volume {printable(volume.name)}")
