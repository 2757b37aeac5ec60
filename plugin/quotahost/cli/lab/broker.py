"""The broker of ``simulate disk``, and its clients: the real host decides, the tap moves limits, the fence turns back.

What Java does is modelled: ``FactorInForce`` (the produce taps, the fence), ``QuotaTable`` (the beats) and ``Rule``
(the floor). The host of a broker here is never silent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from quotahost.api import Role
from quotahost.api.context import LoadedPlugin
from quotahost.broker.host.factor import FactorLoop, PauseMemory
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.broker.host.protocol import Shim
from quotahost.cli.lab.host import SmallShim, policy_of
from quotahost.cli.lab.traffic import ClientPlan, Disk, Events, Scene, Slowing, ms
from quotahost.model import ClusterVolumes, Factor
from quotahost.model.budgets import BUDGET
from quotahost.model.volumes import Affected
from quotahost.settings.broker import Settings
from quotahost.throttling import Tap, lowered

BACKOFF: Final = 100  # ms, retry.backoff.ms of both Kafka's and librdkafka's producers
BEAT: Final = 200  # ms, QuotaTable.BEAT_MS
TAKE: Final = 100  # ms, the longest that the host waits for work
BUDGETS_EVERY: Final = 500  # ms, quotahost.broker.disks.budgets


class Client:
    """Sends one batch after the other; the broker says for how long it is muted. Times are in ms."""

    def __init__(self, plan: ClientPlan, broker: Broker, events: Events, offset: int) -> None:
        """It begins ``offset`` ms after the start."""
        self.plan, self._broker, self._events = plan, broker, events
        self.sent = 0  # bytes that were appended so far
        self.turned_back_at = 0  # last
        self.held_since: int | None = None  # turned back for the first time since the last append
        self._due = float(offset)  # when it has the next batch to send
        self._batches = 0
        # How many batches of a burst come at once, and after how many ms the next burst.
        self._burst = max(1, round(plan.demand * plan.every / 1000 / plan.batch)) if plan.kind == "bursty" else 1
        self._gap = plan.batch * self._burst / plan.demand * 1000
        events.at(offset, self.send)

    def send(self) -> None:
        if self._broker.turns_back(self):
            return
        plan, now = self.plan, self._events.now
        mute = self._broker.append(self)
        self.sent += plan.batch
        self.held_since = None
        if plan.kind == "reconnecting":
            mute = min(mute, plan.every)
        self._batches += 1
        if self._batches % self._burst == 0:
            # An eager client's line is never behind; what a paced one has to send piles up while it waits.
            self._due = (now if plan.kind in ("eager", "reconnecting") else self._due) + self._gap
        self._events.at(max(now + max(mute, 1), int(self._due)), self.send)

    def retry(self) -> None:
        """The fence is open again: it tries as its backoff has it, which began when it was turned back."""
        self._events.after(BACKOFF - (self._events.now - self.turned_back_at) % BACKOFF, self.send)


class OwnDisk:
    """The factor source of a broker that knows its own disk, or what the topics of a budget take."""

    known: ClusterVolumes  # its volume or budget when it looked last

    def __init__(self, disk: Disk, topics: frozenset[str], settings: Settings, events: Events) -> None:
        """``topics`` are those with a replica on the disk."""
        self._disk, self._topics, self._events = disk, topics, events
        # A broker looks at the sizes of budgeted topics twice a second at most.
        self._is_budget = disk.volume.broker == BUDGET
        self._period = max(ms(settings.volumes_period), BUDGETS_EVERY if self._is_budget else 0)
        self.life = 0  # counts its starts and deaths

    def start(self) -> None:
        self.life += 1
        self.known, self._used = ClusterVolumes(()), -1
        self._look(self.life)

    def stop(self) -> None:
        self.life += 1

    def read(self) -> ClusterVolumes | Factor:
        return self.known

    def looked(self) -> None:
        """It has looked; other brokers could be told."""

    def _look(self, life: int) -> None:
        if life != self.life:
            return
        used = self._disk.used
        if used != self._used:
            self._used = used
            # As quotahost.broker.disks.monitor; who writes to a budget is always known.
            topics = self._topics if self._is_budget or self._disk.bounds.may_lower(used) else None
            seen = (replace(self._disk.volume, consumed=used, topics=topics),)
            self.known = ClusterVolumes((), budgets=seen) if self._is_budget else ClusterVolumes(seen)
        self.looked()
        self._events.after(self._period, lambda: self._look(life))


class Broker:
    """Alive or dead; its quotas and its fence follow the factor that its own host has decided on. Times are in ms."""

    up, up_since = False, 0  # whether it is in service, and since when

    def __init__(
        self, scene: Scene, settings: Settings, index: int, source: OwnDisk, disk: Disk, events: Events
    ) -> None:
        """``index`` is its place in the scene, its id in Kafka is one more."""
        self.scene, self.settings, self.index = scene, settings, index
        self.source, self._disk, self._events = source, disk, events
        self._rnd = random.Random(scene.seed * 1009 + index)
        self._interval = ms(settings.factor_interval)
        self._life = 0
        self._waiting: list[Client] = []
        #: Is called with the name of what happens, and its facts.
        self.tell: Callable[..., None] = lambda event, *facts: None
        self._memory = PauseMemory([])

    def start(self) -> None:
        events, scene = self._events, self.scene
        self.up, self.up_since = True, events.now
        self.closed, self.closed_since = False, events.now  # the fence
        self.factor = 1.0  # what the host has set last
        # The way of the produce limits of all clients, and of those who write to affected topics (``slowing``) while
        # the factor is for them only.
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
        self._life += 1
        self._host(self._life)
        self._watch(self._life)
        self._admit()

    # ---- clients ----

    def limit(self, client: Client) -> float:
        """``Rule.limit`` of a client's quota now, in bytes/s."""
        now, name = self._events.now, client.plan.name
        share = self.slowing.share(self.slowing.tags(name, now), now)
        slows = self.slowing.slows(name)
        part = (self.slowed if slows else self.tap).value
        if share < 1:
            # Where the limit is going to: of who writes to no affected topic, to the whole.
            aim = 1.0 if self.slowing.affected is not None and not slows else self._in_force[0]
            part = min(part, max(part, aim) * share)
        return lowered(client.plan.quota, part, self.settings.floor_bytes)

    def turns_back(self, client: Client) -> bool:
        if self.up and not (self.closed and self.slowing.holds(client.plan.name)):
            return False
        client.turned_back_at = self._events.now
        client.held_since = client.held_since or self._events.now
        self._waiting.append(client)
        self.tell("turned_back", client)
        return True

    def append(self, client: Client) -> int:
        """Take a batch; for how many ms the client is muted."""
        plan, now = client.plan, self._events.now
        self._disk.append(plan.batch)
        rate, limit = self.slowing.use(plan.name, now).rate, self.limit(client)
        rate.record(plan.batch, now)
        mute = rate.throttle_ms(limit, now, cast=False)
        self.tell("appended", client, limit, mute)
        return mute

    def _admit(self) -> None:
        waiting, self._waiting = self._waiting, []
        for client in waiting:
            client.retry()

    # ---- the factor ----

    def _set_factor(self, value: float, cause: str, affected: Affected | None) -> None:
        self.factor, self._affected = value, affected
        self._follow()

    @property
    def _in_force(self) -> tuple[float, Affected | None]:
        """The factor in force, and the topics that it is for; None for all clients."""
        return self.factor, self._affected

    def _follow(self) -> None:
        factor, topics = self._in_force
        closed = factor <= 0 and self.scene.fence
        changed, affected = closed is not self.closed, self.slowing.affected
        self.slowing.affect(topics if factor < 1 and self.scene.fence else None, self._events.now)
        if changed:
            before, self.closed, self.closed_since = self.closed_since, closed, self._events.now
            self.tell("fence", self._events.now - before, affected is None)
        self._move()
        # Whose topic is no longer held may write though the fence stays closed.
        if changed or affected != self.slowing.affected:
            self._admit()

    def _move(self) -> None:
        now, factor, affected = self._events.now, self._in_force[0], self.slowing.affected
        held = self.closed and (affected is None or affected.held >= affected.places.keys())
        slowed = self.slowed.step(factor, held, now)
        moved = self.tap.step(factor if affected is None else 1.0, affected is None and held, now)
        if moved or slowed:
            self.tell("moved")

    def _host(self, life: int) -> None:
        if life == self._life:
            self._loop.step(self._plugins, self.settings)
            self._events.after(self._interval + self._rnd.randrange(1, TAKE), lambda: self._host(life))
            self.tell("looked")

    def _watch(self, life: int) -> None:
        if life == self._life:
            self._move()
            self._events.after(BEAT, lambda: self._watch(life))
