"""Plays a scene and keeps its curves, of one broker and its disk, and says how it went.

A sample is taken every ``STEP`` ms; what is shorter than that is not seen. Only the program keeps curves: the checks of
``quotahost.simulation`` run without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from quotahost.model import State
from quotahost.model.bounds import Bounds
from quotahost.simulation.scene import Scene
from quotahost.simulation.world import World

STEP: Final = 100  # ms
_NEAR: Final = 0.1  # of the way from soft to hard: as far from its resting point a volume counts as resting
_DRIFT: Final = 0.05  # of the way: if the last two quarters lie further apart, it is not at rest
_LAST: Final = 4  # the last quarter tells where it rests


@dataclass(frozen=True, slots=True)
class Sample:
    """What is at one moment.

    Attributes:
        ms: from the start.
        used: bytes on the disk.
        factor: what the host has decided on last.
        sent: bytes that each client has got appended so far.
    """

    ms: int
    used: int
    factor: float
    sent: tuple[int, ...]

    @property
    def state(self) -> State:
        """Of that factor."""
        return State.OPEN if self.factor >= 1 else State.THROTTLE if self.factor > 0 else State.PAUSE


@dataclass(frozen=True, slots=True)
class Recording:
    """A run's curves. ``clients`` are names; ``bounds`` are the limits in bytes of the volume."""

    clients: tuple[str, ...]
    bounds: Bounds
    samples: Sequence[Sample]

    @property
    def pauses(self) -> int:
        """How often a PAUSE has begun."""
        states = [State.OPEN, *(sample.state for sample in self.samples)]
        return sum(new is State.PAUSE and old is not State.PAUSE for old, new in pairwise(states))

    @property
    def beyond(self) -> int:
        """By how many bytes the disk was fuller than the hard limit, at most."""
        return max(0, *(sample.used - self.bounds.hard for sample in self.samples))

    def place(self, used: float) -> float:
        """Where a volume is on the way from the soft limit (0) to the hard one (1)."""
        return (used - self.bounds.soft) / max(1, self.bounds.hard - self.bounds.soft)

    @property
    def rest(self) -> float:
        """The mean place in the last quarter."""
        return self._mean(_LAST - 1)

    @property
    def rest_ms(self) -> int | None:
        """From when on the disk stays a tenth of the way or less from there; None if it is still on its way."""
        if abs(self._mean(_LAST - 2) - self.rest) > _DRIFT:
            return None
        away = [i for i, each in enumerate(self.samples) if abs(self.place(each.used) - self.rest) > _NEAR]
        first = away[-1] + 1 if away else 0
        # What comes near in the last quarter only may as well be on its way through.
        return self.samples[first].ms if first < len(self.samples) * (1 - 1 / _LAST) else None

    def _mean(self, quarter: int) -> float:
        size = max(1, len(self.samples) // _LAST)
        return self.place(fmean(each.used for each in self.samples[quarter * size : (quarter + 1) * size]))

    def silence(self, client: int) -> int:
        """The longest time in ms in which a client got nothing while the state was not PAUSE."""
        longest = current = 0
        for old, new in pairwise(self.samples):
            idle = new.sent[client] == old.sent[client] and new.state is not State.PAUSE
            current = current + new.ms - old.ms if idle else 0
            longest = max(longest, current)
        return longest


def record(scene: Scene) -> Recording:
    """Play a scene, and keep the curves of its first broker.

    Raises:
        SettingsError: a property of the scene is unknown or wrong.
        PluginError: its policy can't be had.
    """
    world = World(scene)
    disk, samples = world.disks[0], list[Sample]()

    def sample() -> None:
        sent = tuple(client.sent for client in world.clients)
        samples.append(Sample(world.events.now, disk.used(), world.brokers[0].factor, sent))
        world.events.after(STEP, sample)

    world.events.at(0, sample)
    world.run()
    return Recording(tuple(client.plan.name for client in world.clients), disk.bounds, samples)
