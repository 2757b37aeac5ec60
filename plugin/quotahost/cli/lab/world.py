"""``simulate disk`` plays this model of brokers, disks and clients, and records the curves of a run.

A client sends batches to its broker, which says for how long Kafka mutes the client. The broker's real host reads the
disk and decides on the factor; the tap moves the limits to the factor, and at factor 0 the fence turns requests back.
``Broker`` models Java's ``FactorInForce`` (the produce taps, the fence), ``QuotaTable`` (the beats) and ``Rule`` (the
floor). The host of a live broker is never silent here. Times are in ms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple, cast

from quotahost.api import Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.host.factor import FactorLoop, PauseMemory
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.broker.host.protocol import Shim
from quotahost.cli.lab.host import SmallShim, policy_of, quiet
from quotahost.cli.lab.traffic import ClientPlan, Events, Scene, Slowing, ms
from quotahost.model import ClusterVolumes, Factor, State, Volume
from quotahost.model.budgets import BUDGET, Budget, as_volume
from quotahost.model.volumes import Affected, ByteLimits, byte_limits
from quotahost.throttling import Tap, lowered

BACKOFF: Final = 100  # retry.backoff.ms of both Kafka's and librdkafka's producers
BEAT: Final = 200  # QuotaTable.BEAT_MS
TAKE: Final = 100  # the host's longest wait for work
STEP: Final = 100  # the time between two samples; the curves don't show anything shorter
_NEAR: Final = 0.1  # a share of the way from soft to hard: a volume this close to its resting point is at rest
_DRIFT: Final = 0.05  # a share of the way: if the means of the last two quarters differ by more, it is not at rest
_LAST: Final = 4  # a run has four quarters; the resting point is the mean of the last one


class World:
    """The disks, brokers and clients of a run, in the scene's order. Each broker knows only its own disk."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.events, self.settings = scene, Events(), scene.settings
        self.disks = [self.disk(index) for index in range(len(scene.disks))]
        self.brokers = [self.broker(index) for index in range(len(scene.disks))]
        self.clients = [Client(plan, self.brokers[plan.home], 37 + 61 * i) for i, plan in enumerate(scene.clients)]

    def disk(self, index: int) -> Disk:
        return Disk(self, index)

    def broker(self, index: int) -> Broker:
        return Broker(self, index, OwnDisk(self, index))

    def run(self) -> None:
        with quiet():
            for broker in self.brokers:
                broker.start()
            self.events.run(self.scene.ms)


class Disk:
    """The bytes on a volume, or of a budget of storage."""

    def __init__(self, world: World, index: int) -> None:
        self._events, settings = world.events, world.settings
        self._plan = plan = world.scene.disks[index]
        volume = (
            as_volume(Budget(BUDGET, ("*",), plan.capacity), 0, frozenset(), settings.budget_soft_share)
            if plan.is_budget
            else Volume(str(index + 1), "/data", plan.capacity, 0)
        )
        soft, hard = settings.static.storage.limits_of(volume)
        self.volume = replace(volume, soft=soft, hard=hard)  # as the host sees the empty volume
        # The factor falls between these two consumptions.
        self.bounds = byte_limits(volume, soft, hard) or ByteLimits(plan.capacity, plan.capacity)
        self.used = self.bounds.soft if plan.used is None else plan.used  # bytes consumed now
        if plan.drain:
            self._events.at(plan.lump, self._retention)
        self.changed()

    def append(self, size: int) -> None:
        self.used += size
        self.changed()

    def free(self, size: int) -> None:
        self.used = max(0, self.used - size)
        self.changed()

    def _retention(self) -> None:
        self.free(int(self._plan.drain * self._plan.lump / 1000))
        self._events.after(self._plan.lump, self._retention)

    def changed(self) -> None:
        """Called when ``used`` has changed; the checks of ``harness.loop`` override this method."""


class Client:
    """Sends one batch after another; the broker says for how long the client is muted after each."""

    def __init__(self, plan: ClientPlan, broker: Broker, offset: int) -> None:
        """The client sends its first batch ``offset`` ms after the start."""
        self.plan, self._broker, self._events = plan, broker, broker.events
        self.sent = 0  # bytes appended so far
        self._due = float(offset)  # the time at which the client has the next batch to send
        self._batches = 0
        # The number of batches in a burst, and the ms from one burst to the next.
        self._burst = max(1, round(plan.demand * plan.every / 1000 / plan.batch)) if plan.kind == "bursty" else 1
        self._gap = plan.batch * self._burst / plan.demand * 1000
        self._events.at(offset, self.send)

    def send(self) -> None:
        if self._broker.turns_back(self):
            return
        plan, now = self.plan, self._events.now
        mute = self._broker.append(self)
        self.sent += plan.batch
        self._batches += 1
        if self._batches % self._burst == 0:
            # The line of an eager client has no backlog; the batches of a paced client pile up during a mute.
            self._due = (now if plan.kind == "eager" else self._due) + self._gap
        self._events.at(max(now + max(mute, 1), int(self._due)), self.send)


class OwnDisk:
    """The factor source of a broker: it knows the bytes on the broker's own disk, or those of a budget's topics."""

    known: ClusterVolumes  # the volume at the last look

    def __init__(self, world: World, index: int) -> None:
        self._disk, self._events = world.disks[index], world.events
        # The topics with a replica on the disk: each client's topic has the client's name.
        self._topics = frozenset(client.name for client in world.scene.clients if index in client.places)
        self._period = ms(world.settings.volumes_period)
        self.life = 0  # counts the broker's starts and deaths, so that events of an earlier life do nothing

    def start(self) -> None:
        self.life += 1
        self._look(self.life)

    def read(self) -> ClusterVolumes | Factor:
        return self.known

    def looked(self) -> None:
        """Called after each look; a subclass may publish what the source knows to other brokers."""

    def _look(self, life: int) -> None:
        if life != self.life:
            return
        used = self._disk.used
        # quotahost.broker.disks.monitor has the same rule.
        topics = self._topics if self._disk.bounds.may_lower(used) else None
        self.known = ClusterVolumes((replace(self._disk.volume, consumed=used, topics=topics),))
        self.looked()
        self._events.after(self._period, lambda: self._look(life))


class Broker:
    """A broker, alive or dead; its quotas and its fence follow the factor of its own host."""

    up, up_since = False, 0  # whether the broker is in service, and the time of its last start

    def __init__(self, world: World, index: int, source: OwnDisk) -> None:
        """``index`` is the broker's place in the scene; its id in Kafka is ``index`` + 1."""
        self.scene, self.settings, self.events = world.scene, world.settings, world.events
        self.index, self.source, self._disk = index, source, world.disks[index]
        self._rnd = random.Random(self.scene.seed * 1009 + index)
        self._interval = ms(self.settings.factor_interval)
        self._waiting: list[tuple[Client, int]] = []  # clients, and the times at which they were turned back
        #: A callback that gets the name of each event, and the facts of the event.
        self.tell: Callable[..., None] = lambda event, *facts: None
        self._memory = PauseMemory([])

    def start(self) -> None:
        events, scene = self.events, self.scene
        self.up, self.up_since = True, events.now
        self.closed, self.closed_since = False, events.now  # the fence
        self.factor = 1.0  # the last factor from the host
        # ``tap`` moves the produce limits of all clients. While the factor is only for writers to affected topics,
        # ``slowed`` moves theirs.
        mute = ms(self.settings.max_mute)
        self.tap, self.slowed = (Tap(scene.windows, scene.window_ms, mute) for _ in range(2))
        self.slowing = Slowing(scene.windows, scene.window_ms)
        self._affected: Affected | None = None
        self.tell("moved")
        self.shim = SmallShim(scene.fence, self._set_factor)
        shim = cast("Shim", self.shim)
        self._loop = FactorLoop(shim, Guard(shim, events.clock), events.clock, self._memory)
        policy = policy_of(self.settings, self.index + 1, events.clock)
        self._plugins = PluginSet([LoadedPlugin(Role.FACTOR_SOURCE, self.source, policy.context), policy])
        self.source.start()
        self._host(self.source.life)
        self._watch(self.source.life)
        self._admit()

    # ---- clients ----

    def limit(self, client: Client) -> float:
        """The client's limit now, in bytes/s, as ``Rule.limit`` makes it of the client's quota."""
        now, name = self.events.now, client.plan.name
        share = self.slowing.share(self.slowing.tags(name, now), now)
        slows = self.slowing.slows(name)
        part = (self.slowed if slows else self.tap).value
        if share < 1:
            # The aim of a rising limit; for a client that writes to no affected topic, the whole quota.
            aim = 1.0 if self.slowing.affected is not None and not slows else self._in_force[0]
            part = min(part, max(part, aim) * share)
        return lowered(client.plan.quota, part, self.settings.floor_bytes)

    def turns_back(self, client: Client) -> bool:
        if self.up and not (self.closed and self.slowing.holds(client.plan.name)):
            return False
        self._waiting.append((client, self.events.now))
        self.tell("turned_back", client)
        return True

    def append(self, client: Client) -> int:
        """Append a batch; return for how many ms the client is muted."""
        plan, now = client.plan, self.events.now
        self._disk.append(plan.batch)
        rate, limit = self.slowing.use(plan.name, now).rate, self.limit(client)
        rate.record(plan.batch, now)
        mute = rate.throttle_ms(limit, now)
        self.tell("appended", client, limit, mute)
        return mute

    def _admit(self) -> None:
        waiting, self._waiting = self._waiting, []
        for client, since in waiting:
            # A retry comes at the next multiple of the backoff since the request was turned back.
            self.events.after(BACKOFF - (self.events.now - since) % BACKOFF, client.send)

    # ---- the factor ----

    def _set_factor(self, value: float, affected: Affected | None) -> None:
        self.factor, self._affected = value, affected
        self._follow()

    @property
    def _in_force(self) -> tuple[float, Affected | None]:
        """The factor in force, and the topics whose writers it is for; None if it is for all clients."""
        return self.factor, self._affected

    def _follow(self) -> None:
        factor, topics = self._in_force
        closed = factor <= 0 and self.scene.fence
        changed, affected = closed is not self.closed, self.slowing.affected
        self.slowing.affect(topics if factor < 1 and self.scene.fence else None, self.events.now)
        if changed:
            before, self.closed, self.closed_since = self.closed_since, closed, self.events.now
            self.tell("fence", self.events.now - before, affected is None)
        self._move()
        # A client whose topic is no longer held may write, although the fence stays closed.
        if changed or affected != self.slowing.affected:
            self._admit()

    def _move(self) -> None:
        now, factor, affected = self.events.now, self._in_force[0], self.slowing.affected
        held = self.closed and (affected is None or affected.held >= affected.places.keys())
        slowed = self.slowed.step(factor, held, now)
        moved = self.tap.step(factor if affected is None else 1.0, affected is None and held, now)
        if moved or slowed:
            self.tell("moved")

    def _host(self, life: int) -> None:
        if life == self.source.life:
            self._loop.step(self._plugins, self.settings)
            self.events.after(self._interval + self._rnd.randrange(1, TAKE), lambda: self._host(life))
            self.tell("looked")

    def _watch(self, life: int) -> None:
        if life == self.source.life:
            self._move()
            self.events.after(BEAT, lambda: self._watch(life))


# ---- the curves of a run ----


class Sample(NamedTuple):
    """The bytes used on the disk at a time, the last factor, and the bytes that each client has written so far."""

    ms: int
    used: int
    factor: float
    sent: tuple[int, ...]

    @property
    def state(self) -> State:
        return Factor(self.factor).state


@dataclass(frozen=True, slots=True)
class Recording:
    """The curves of a run. ``clients`` are names; ``bounds`` are the volume's limits in bytes."""

    clients: tuple[str, ...]
    bounds: ByteLimits
    samples: Sequence[Sample]

    def first(self, *states: State) -> int | None:
        return next((sample.ms for sample in self.samples if sample.state in states), None)

    @property
    def beyond(self) -> int:
        """The most bytes that the disk held beyond the hard limit."""
        return max(0, *(sample.used - self.bounds.hard for sample in self.samples))

    def place(self, used: float) -> float:
        """The place of a volume on the way from the soft limit (0) to the hard limit (1)."""
        return (used - self.bounds.soft) / max(1, self.bounds.hard - self.bounds.soft)

    @property
    def rest(self) -> float:
        """The resting point: the mean place in the last quarter."""
        return self._mean(_LAST - 1)

    @property
    def rest_ms(self) -> int | None:
        """The time from which the disk stays within a tenth of the way of ``rest``; None if it is not at rest."""
        rest = self.rest
        if abs(self._mean(_LAST - 2) - rest) > _DRIFT:
            return None
        away = [i for i, sample in enumerate(self.samples) if abs(self.place(sample.used) - rest) > _NEAR]
        first = away[-1] + 1 if away else 0
        # A disk that comes near only in the last quarter may just be passing through.
        return self.samples[first].ms if first < len(self.samples) * (1 - 1 / _LAST) else None

    def _mean(self, quarter: int) -> float:
        size = max(1, len(self.samples) // _LAST)
        return self.place(fmean(sample.used for sample in self.samples[quarter * size : (quarter + 1) * size]))

    def silence(self, client: int) -> int:
        """The longest time in ms in which the broker appended nothing from a client while the state was not PAUSE."""
        longest = current = 0
        for old, new in pairwise(self.samples):
            idle = new.sent[client] == old.sent[client] and new.state is not State.PAUSE
            current = current + new.ms - old.ms if idle else 0
            longest = max(longest, current)
        return longest


def pauses(factors: Iterable[float]) -> int:
    """The number of PAUSEs that begin in a series of factors; the state before the series is OPEN."""
    return sum(new <= 0 < old for old, new in pairwise([1.0, *factors]))


def record(world: World) -> Recording:
    """Play a world, and return the curves of its first broker, with one sample every ``STEP`` ms."""
    disk, samples = world.disks[0], list[Sample]()

    def sample() -> None:
        sent = tuple(client.sent for client in world.clients)
        samples.append(Sample(world.events.now, disk.used, world.brokers[0].factor, sent))
        world.events.after(STEP, sample)

    world.events.at(0, sample)
    world.run()
    return Recording(tuple(client.plan.name for client in world.clients), disk.bounds, samples)
