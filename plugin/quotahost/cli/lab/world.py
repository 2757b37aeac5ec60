"""Plays a scene of ``simulate disk``; keeps its curves: where the disk came to rest, how long clients got nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

from quotahost.cli.lab.broker import Broker, Client, OwnDisk
from quotahost.cli.lab.host import quiet, settings_of
from quotahost.cli.lab.traffic import Disk, DiskPlan, Events, Scene
from quotahost.model import Factor, State, Volume
from quotahost.model.budgets import BUDGET, Budget, as_volume
from quotahost.model.volumes import ByteLimits, byte_limits
from quotahost.settings.broker import Settings

VOLUME: Final = "/data"
STEP: Final = 100  # ms; what is shorter than that is not seen
_NEAR: Final = 0.1  # of the way from soft to hard: as far from its resting point a volume counts as resting
_DRIFT: Final = 0.05  # of the way: if the last two quarters lie further apart, it is not at rest
_LAST: Final = 4  # the last quarter tells where it rests


class World:
    """All that moves in a run: disks, brokers and clients are in the scene's order. Each broker knows its own disk."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.events = scene, Events()
        self.settings = settings_of(scene.properties)
        self.disks = [self._disk(plan, str(i + 1)) for i, plan in enumerate(scene.disks)]
        self.brokers = [self.broker(index) for index in range(len(self.disks))]
        self.clients = [
            Client(plan, self.brokers[plan.home], self.events, 37 + 61 * i) for i, plan in enumerate(scene.clients)
        ]

    def disk(self, plan: DiskPlan, volume: Volume, bounds: ByteLimits) -> Disk:
        return Disk(plan, volume, bounds, self.events)

    def broker(self, index: int) -> Broker:
        source = OwnDisk(self.disks[index], self.topics_on(index), self.settings, self.events)
        return Broker(self.scene, self.settings, index, source, self.disks[index], self.events)

    def topics_on(self, index: int) -> frozenset[str]:
        """The topics with a replica on a broker's disk; each client's has the client's name."""
        return frozenset(client.name for client in self.scene.clients if index in client.places)

    def run(self) -> None:
        with quiet():
            for broker in self.brokers:
                broker.start()
            self.events.run(self.scene.ms)

    def _disk(self, plan: DiskPlan, broker: str) -> Disk:
        volume, bounds = volume_of(plan, self.settings, broker)
        return self.disk(plan, volume, bounds or ByteLimits(plan.capacity, plan.capacity))


def volume_of(plan: DiskPlan, settings: Settings, broker: str) -> tuple[Volume, ByteLimits | None]:
    """What a broker sees of its disk, and between which consumptions the factor falls; None without limits."""
    if plan.is_budget:
        volume = as_volume(Budget(BUDGET, ("*",), plan.capacity), plan.used, frozenset(), settings.budget_soft_share)
    else:
        volume = Volume(broker, VOLUME, plan.capacity, plan.used)
    soft, hard = settings.static.storage.limits_of(volume)
    return replace(volume, soft=soft, hard=hard), byte_limits(volume, soft, hard)


class Sample(NamedTuple):
    """Bytes used on the disk at a time, the factor decided on last, and bytes that each client has got appended."""

    ms: int
    used: int
    factor: float
    sent: tuple[int, ...]

    @property
    def state(self) -> State:
        return Factor(self.factor).state


@dataclass(frozen=True, slots=True)
class Recording:
    """A run's curves. ``clients`` are names; ``bounds`` are the limits in bytes of the volume."""

    clients: tuple[str, ...]
    bounds: ByteLimits
    samples: Sequence[Sample]

    def first(self, *states: State) -> int | None:
        return next((sample.ms for sample in self.samples if sample.state in states), None)

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
        away = [i for i, sample in enumerate(self.samples) if abs(self.place(sample.used) - self.rest) > _NEAR]
        first = away[-1] + 1 if away else 0
        # What comes near in the last quarter only may as well be on its way through.
        return self.samples[first].ms if first < len(self.samples) * (1 - 1 / _LAST) else None

    def _mean(self, quarter: int) -> float:
        size = max(1, len(self.samples) // _LAST)
        return self.place(fmean(sample.used for sample in self.samples[quarter * size : (quarter + 1) * size]))

    def silence(self, client: int) -> int:
        """The longest time in ms in which a client got nothing while the state was not PAUSE."""
        longest = current = 0
        for old, new in pairwise(self.samples):
            idle = new.sent[client] == old.sent[client] and new.state is not State.PAUSE
            current = current + new.ms - old.ms if idle else 0
            longest = max(longest, current)
        return longest


def pauses(factors: Iterable[float]) -> int:
    """How often a PAUSE begins in a course of factors, which follows upon OPEN."""
    return sum(new <= 0 < old for old, new in pairwise([1.0, *factors]))


def record(world: World) -> Recording:
    """Play a world, and keep the curves of its first broker, one sample every ``STEP`` ms."""
    disk, samples = world.disks[0], list[Sample]()

    def sample() -> None:
        sent = tuple(client.sent for client in world.clients)
        samples.append(Sample(world.events.now, disk.used, world.brokers[0].factor, sent))
        world.events.after(STEP, sample)

    world.events.at(0, sample)
    world.run()
    return Recording(tuple(client.plan.name for client in world.clients), disk.bounds, samples)
