"""The volumes that one factor depends on, then and with the new settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quotahost.replay.decider import Decider, Key
from quotahost.replay.tally import Tally
from quotahost.replay.track import Track
from quotahost.replay.values import FactorPoint, Where
from quotahost.settings.broker import Settings


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared.

    Attributes:
        new: the settings in question.
        then: those of the brokers then, without limits: those come with each reading.
        windows: ``quota.window.num`` and the length of one in ms.
    """

    new: Settings
    then: Settings
    windows: tuple[int, int] = (11, 1000)


class Group:
    """The volumes that one factor depends on, then and now, and that factor."""

    def __init__(self, cluster: str, broker: str, tracks: list[Track], plan: Plan, clock: Callable[[], float]) -> None:
        self.cluster, self.broker, self.tracks = cluster, broker, tracks
        self._then, self._new = (Decider(own, plan.windows, clock) for own in (plan.then, plan.new))
        self._tallies, self._unknown, self._fresh = (Tally(), Tally()), 0.0, frozenset[Key]()
        self._factors: list[FactorPoint] = []

    @property
    def failed(self) -> bool:
        """Whether a policy has failed."""
        return self._then.failed or self._new.failed

    def step(self, now: float, seconds: float, silent: float) -> None:
        """Look at the volumes, decide, and let that be for so many seconds."""
        news = [track.take(now) for track in self.tracks]
        known = [track for track in self.tracks if track.known(now, silent)]
        fresh = frozenset(track.key for track in known)
        if any(news) or fresh != self._fresh:
            self._fresh = fresh
            self._then.know(tuple(track.as_recorded() for track in known))
            self._new.know(tuple(track.as_would_be() for track in known))
        if known:
            self._then.step()
            self._new.step()
            self._count(now, seconds, known)
        else:
            self._unknown += seconds
        for track in self.tracks:
            track.then_s += self._then.share_of(track.key) * seconds
            track.new_s += self._new.share_of(track.key) * seconds

    def _count(self, now: float, seconds: float, known: list[Track]) -> None:
        point = FactorPoint(now, self._then.factor, self._new.factor)
        if not self._factors or self._factors[-1][1:] != point[1:]:
            self._factors.append(point)
        for tally, factor in zip(self._tallies, point[1:], strict=True):
            tally.add(now, factor, seconds)
        for track in known:
            track.then.add(now, self._then.factor_of(track.key), seconds)
            track.new.add(now, self._new.factor_of(track.key), seconds)

    def where(self) -> Where:
        """What became of the factor."""
        then, new = (tally.held for tally in self._tallies)
        return Where(self.cluster, self.broker, then, new, self._unknown, tuple(self._factors))
