"""Holds a volume's PAUSE until enough of it is free again (``pause.resume.free-share``).

A PAUSE that ended with the first free byte would begin again a moment later, with the next append. So a volume that
reached its hard limit keeps the factor 0 until it is some way below. That holds for every policy that can be asked for
its limits (contract 12). Proposal 035 has no such rule; ``pause.resume.free-share=0`` is its form.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from quotahost.api import LimitAware, QuotaPolicy
from quotahost.broker.host.guard import Failed, Guard
from quotahost.model import Volume
from quotahost.model.volumes import ByteLimits, byte_limits

MOST: Final = 4096  # volumes to remember: the names come from other brokers. Any more let go at once
_FORGET: Final = 600.0  # seconds after which a volume that nobody reports any more is forgotten


class Pauses:
    """Which volumes are in a PAUSE that began at their hard limit.

    Only this broker's memory tells whether a volume between its limits is in a PAUSE. One that has just started has
    none, and takes the factor of the policy; near the hard limit that is a small one.
    """

    def __init__(self, guard: Guard, clock: Callable[[], float]) -> None:
        """``clock`` in seconds, monotonic."""
        self._guard, self._clock = guard, clock
        self._seen: OrderedDict[tuple[str, str], float] = OrderedDict()  # when; the longest ago first
        self._policy: QuotaPolicy | None = None  # the one that was asked last
        self._aware: LimitAware | None = None  # the same, if it tells its limits
        self._round: list[tuple[str, str]] = []  # those of the newest answer of the factor source

    def held(self, policy: tuple[str, QuotaPolicy], share: float, volume: Volume, factor: float) -> int | None:
        """At how many bytes used the volume's PAUSE ends, if it is in one that its factor alone wouldn't keep.

        Args:
            policy: by whose limits.
            share: ``pause.resume.free-share``.
            volume: as it is now.
            factor: what the policy said of it.
        """
        # Of 20,000 volumes hardly any is in a PAUSE, and all are asked for several times a second.
        known = bool(self._seen) and (volume.broker, volume.name) in self._seen
        if factor > 0 and not known:
            return None
        key = volume.broker, volume.name
        found = self._bounds(policy, volume)
        if factor == 0 and found and found.breaches_hard(volume.consumed):
            self._remember(key)
            return None
        if not known:
            return None
        if found is None or volume.consumed <= found.lets_go_at(share):
            del self._seen[key]
            return None
        self._remember(key)
        return found.lets_go_at(share)

    def last(self) -> None:
        """The factor source has given its last answer again, so its volumes aren't judged: they are as they were."""
        for key in self._round:
            self._seen[key] = self._clock()
            self._seen.move_to_end(key)

    def forget(self) -> None:
        """A new answer is judged next. Forget volumes that nobody has reported for long."""
        self._round = []
        old = self._clock() - _FORGET
        while self._seen and next(iter(self._seen.values())) < old:
            self._seen.popitem(last=False)

    def _remember(self, key: tuple[str, str]) -> None:
        if key in self._seen or len(self._seen) < MOST:
            self._seen[key] = self._clock()
            self._seen.move_to_end(key)
            self._round.append(key)

    def _bounds(self, policy: tuple[str, QuotaPolicy], volume: Volume) -> ByteLimits | None:
        """The volume's limits by the policy; None if it has none, can't be asked, or fails."""
        name, plugin = policy
        answer = self._guard.call(
            name, "soft_limit() or hard_limit()", "a PAUSE ends as soon as the factor is above 0",
            lambda: self._ask(plugin, volume),
        )  # fmt: skip
        return None if isinstance(answer, Failed) else answer

    def _ask(self, plugin: QuotaPolicy, volume: Volume) -> ByteLimits | None:
        # Once for each policy: isinstance with a Protocol takes longer than all the rest.
        if plugin is not self._policy:
            self._aware = plugin if isinstance(plugin, LimitAware) else None
            self._policy = plugin
        aware = self._aware
        return byte_limits(volume, aware.soft_limit(volume), aware.hard_limit(volume)) if aware else None
