"""Several brokers in the model of ``quotahost simulate disk``: snapshots, their ways, the pipeline, deaths and hangs.

A broker looks at its own disk every ``volumes.period`` and publishes the changes that are worth a record (``Source``).
Each record takes a separate time to each reader, or is lost (``Topic``). If there is a pipeline, it gets the snapshots,
too, and publishes a record of the whole cluster every tick while it runs (``Pipeline``). A host then reads its own disk
and the others' records: with one broker like the source ``local``, with several like ``snapshots``, and with a pipeline
through the real source ``cluster-volumes``. The real roster keeps the snapshots, and the real rule decides which
changes are worth a record. ``Cluster`` puts a scene together from these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from harness.rollup import Known, Sample, rollup
from quotahost.api import Context
from quotahost.broker.plugins.factor_sources.cluster_volumes import ClusterVolumesSource
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.broker.plugins.tasks.publish_volumes import has_changed
from quotahost.cli.lab.host import log
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan, Events, Scene, ms
from quotahost.cli.lab.world import Broker, Client, Disk, OwnDisk, World
from quotahost.model import ClusterVolumes, Factor, State
from quotahost.model.volumes import Affected
from quotahost.pipeline.cluster import Rules
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.codec import Refused
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker

SESSION: Final = 9000  # ms, broker.session.timeout.ms: after that a silent broker is fenced
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
CLUSTER: Final = "simulated"
LEASE: Final = 50  # ms, Lease.CHECK_MS
_LUMP: Final = 100  # ms between two appends of writers without a quota
Register: TypeAlias = Callable[[Mapping[str, bool]], None]


@dataclass(frozen=True, slots=True)
class WayPlan:
    """How snapshots come to the other brokers.

    Attributes:
        fastest, slowest: ms; each snapshot takes a separate time to each reader, so snapshots overtake each other.
        lost: the share of snapshots that never arrive.
        silences: a broker's index, and from when to when all its snapshots are lost.
    """

    fastest: int = 5
    slowest: int = 50
    lost: float = 0.0
    silences: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """The Spark pipeline: ms between two records (``--tick``), and when it dies and when it is back."""

    tick: int = 2000
    deaths: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Reconnecting(ClientPlan):
    """An eager client that evades mutes by a new connection every ``every`` ms."""


@dataclass(frozen=True, slots=True)
class BusyDisk(DiskPlan):
    """A disk that is also filled by writers other than clients."""

    #: Begin and end in ms and bytes/s of writers without a quota.
    others: tuple[tuple[int, int, float], ...] = ()
    cleanups: tuple[tuple[int, int], ...] = ()  # the time at which an operator frees bytes, and their number


@dataclass(frozen=True, slots=True)
class ClusterScene(Scene):
    """A scene with the events that may happen to several brokers."""

    way: WayPlan = WayPlan()  # the way of snapshots between several brokers, and of the pipeline's records
    pipeline: PipelinePlan | None = None  # None for none; then the brokers' factor source is ``snapshots``
    deaths: tuple[tuple[int, int, int], ...] = ()  # a broker's index, when it dies and when it is back
    #: A broker's index, and from when to when its host doesn't answer, since a plugin hangs.
    hangs: tuple[tuple[int, int, int], ...] = ()
    steady: bool = False  # demand and drain are constant, so the factor must settle


def _wall_ms(now: int) -> int:
    return int(EPOCH.timestamp() * 1000) + now


class Topic:
    """The compacted topics of snapshots and of cluster records, with the pipeline between them if the scene has one.

    Attributes:
        registered: by broker, whether it is fenced.
        snapshots: by broker its latest snapshot, and the time in ms at which it was written.
        slowest: ms after which a broker's news has come to all others, unless it is lost.
        disturbed_until: the time in ms until which a reader may know less than the latest snapshots say.
    """

    def __init__(self, scene: ClusterScene, settings: Settings, events: Events) -> None:
        self._way, self._events = scene.way, events
        self._rnd = random.Random(scene.seed * 1013 + 7)
        self._period = ms(settings.snapshots_period)
        self._sources: list[Source] = []
        self.snapshots: dict[str, tuple[Snapshot, int]] = {}
        self._record: tuple[ClusterRecord, int] | None = None
        self.registered: dict[str, bool] = {}
        self.disturbed_until = 0
        self.pipeline = scene.pipeline and Pipeline(scene.pipeline, settings, self, events)
        more = scene.pipeline.tick + scene.way.slowest if scene.pipeline else 0
        self.slowest = scene.way.slowest + more

    def join(self, source: Source) -> None:
        """Register a broker that is in service; it reads from now on."""
        self._sources.append(source)
        self.registered[source.broker] = False

    def fence(self, broker: str, fenced: bool) -> None:
        """Tell all brokers that the controllers have noticed that a broker died, or is back."""
        self.registered[broker] = fenced
        for source in self._sources:
            source.register(self.registered)

    def disturb(self, lasts: int) -> None:
        """Note that a reader may know less than it should, until so long after now."""
        self.disturbed_until = max(self.disturbed_until, self._events.now + lasts + self.slowest)

    def publish(self, snapshot: Snapshot) -> None:
        """Hand a snapshot to all readers, each after a time of its own, unless it is lost."""
        now, index = self._events.now, int(snapshot.broker) - 1
        silent = any(which == index and begin <= now < end for which, begin, end in self._way.silences)
        if silent or self._is_lost():
            self.disturb(self._period)
            return
        self.snapshots[snapshot.broker] = snapshot, now
        for source in self._sources:
            if source.broker != snapshot.broker:
                self._send(source, partial(source.take, snapshot, now))
        if self.pipeline:
            self._send(self.pipeline, partial(self.pipeline.take, snapshot, now))

    def publish_record(self, record: ClusterRecord) -> None:
        """Hand the pipeline's record to all brokers in the same way."""
        if self._is_lost():
            self.disturb(0)
            return
        self._record = record, self._events.now
        for source in self._sources:
            self._send(source, partial(source.take_record, *self._record))

    def replay(self, source: Source) -> None:
        """Give a broker that starts the records that are in the topics."""
        for snapshot, written in self.snapshots.values():
            if snapshot.broker != source.broker:
                source.take(snapshot, written, live=False)
        if self._record:
            source.take_record(*self._record, live=False)

    def _send(self, reader: Source | Pipeline, arrive: Callable[[], None]) -> None:
        """Send a record, unless the reader starts anew meanwhile and finds the record in the topic."""
        life = reader.life
        delay = self._rnd.randint(self._way.fastest, self._way.slowest)
        self._events.after(delay, lambda: arrive() if life == reader.life else None)

    def _is_lost(self) -> bool:
        return self._way.lost > 0 and self._rnd.random() < self._way.lost


class Pipeline:
    """Reads the snapshots that arrive, and publishes a record every tick while it runs.

    Attributes:
        life: how often it has been launched or has died.
    """

    def __init__(self, plan: PipelinePlan, settings: Settings, topic: Topic, events: Events) -> None:
        self._plan, self._topic, self._events = plan, topic, events
        self._validity = settings.validity
        self._latest: dict[str, tuple[Snapshot, int]] = {}
        self._run = self._sequence = self.life = 0
        self._launch()
        for dies, back in plan.deaths:
            events.at(dies, self._die)
            events.at(back, self._launch)

    def take(self, snapshot: Snapshot, written: int) -> None:
        """Take a snapshot that was written at that time, in ms."""
        kept = self._latest.get(snapshot.broker)
        if kept is None or kept[0].captured_at <= snapshot.captured_at:
            self._latest[snapshot.broker] = snapshot, written

    def _launch(self) -> None:
        self.life += 1
        self._run, self._sequence = _wall_ms(self._events.now), 0
        self._latest = dict(self._topic.snapshots)
        self._tick(self.life)

    def _die(self) -> None:
        self.life += 1
        self._topic.disturb(ms(self._validity))  # the standby answers after that

    def _tick(self, life: int) -> None:
        if life != self.life:
            return
        if self._latest:
            self._sequence += 1
            self._topic.publish_record(self._record())
        self._events.after(self._plan.tick, partial(self._tick, life))

    def _record(self) -> ClusterRecord:
        known = {
            (CLUSTER, broker): Known(Sample(EPOCH + timedelta(milliseconds=written), 0, snapshot), None)
            for broker, (snapshot, written) in self._latest.items()
        }
        in_service = [broker for broker, fenced in self._topic.registered.items() if not fenced]
        rules = Rules(CLUSTER, self._validity, registered=in_service)
        (record,) = rollup(known, rules, self._run, self._sequence, _wall_ms(self._events.now))
        return record


class Source(OwnDisk):
    """Publishes the broker's own disk, and reads the records of other brokers.

    Attributes:
        broker: the broker's id.
    """

    def __init__(self, world: World, index: int, topic: Topic) -> None:
        """Make the source of the broker with this index."""
        super().__init__(world, index)
        self.broker, self._settings, self._topic = str(index + 1), world.settings, topic
        self._cluster: ClusterVolumesSource | None = None
        self._validity = world.settings.validity.total_seconds()
        self._roster = Roster(self._events.clock, self._wall)
        topic.join(self)

    def start(self) -> None:
        """Look at the disk, and read the topic."""
        self._published: tuple[Snapshot, int] | None = None
        self._roster = Roster(self._events.clock, self._wall)
        self._cluster = self._cluster_volumes() if self._topic.pipeline else None
        self.known = ClusterVolumes(())  # the cluster's source asks for the known volumes of the own disk
        self._topic.fence(self.broker, False)
        self._topic.replay(self)
        super().start()

    def read(self) -> ClusterVolumes | Factor:
        """Return the volumes like ``snapshots``, or through ``cluster-volumes`` itself."""
        return self._by_snapshots() if self._cluster is None else self._cluster.read()

    def register(self, brokers: dict[str, bool]) -> None:
        """Note the registered brokers, and whether each is fenced."""
        self._roster.register(brokers)
        if self._cluster is not None:
            self._register(brokers)

    def take(self, snapshot: Snapshot, written: int, live: bool = True) -> None:
        """Keep a snapshot that was written at that time, in ms, if it is the latest."""
        self._roster.take(snapshot, live, self._validity, _wall_ms(written))

    def take_record(self, record: ClusterRecord, written: int, live: bool = True) -> None:
        """Keep a record of the cluster if it is the latest, as the real source does."""
        assert self._cluster is not None
        with suppress(Refused):
            self._cluster.latest.take(record, live, self._validity, _wall_ms(written))

    def _by_snapshots(self) -> ClusterVolumes:
        """Return the answer of ``snapshots``, which is also the standby of ``cluster-volumes``."""
        view = self._roster.view(self.broker, self._settings)
        return ClusterVolumes((*self.known.volumes, *view.volumes), tuple(view.unknown), view.waiting)

    def _cluster_volumes(self) -> ClusterVolumesSource:
        """Make the real source; this model's topic replaces its follower, ``snapshots`` and the registered brokers."""
        broker = FakeBroker()
        context = Context("cluster-volumes", None, self._settings, int(self.broker), log, broker=broker, metrics=broker)
        disks: Any = SimpleNamespace(cluster_id=CLUSTER, known=lambda: self.known)
        context.open_disks = lambda: disks
        # The source ``snapshots`` is built immediately, and has read its topic.
        snapshots: Any = SimpleNamespace(read=lambda answers: self._by_snapshots())

        def brokers(context: Context, register: Register) -> Any:
            self._register = register
            return None

        def follower(*_: Any, **__: Any) -> Any:
            return SimpleNamespace(waits_for="")  # the topic has been read

        return ClusterVolumesSource(context, self._wall, self._events.clock, lambda _: snapshots, brokers, follower)

    def looked(self) -> None:
        """Publish the changes that are worth a record."""
        now = self._events.now
        soft, hard = self._settings.static.storage.soft_limit, self._settings.static.storage.hard_limit
        seen = Snapshot(self.broker, EPOCH + timedelta(milliseconds=now), self.known.volumes, soft, hard, age_ms=0)
        due = self._published is None or now - self._published[1] >= ms(self._settings.snapshots_period)
        if due or (self._published and has_changed(self._published[0], seen)):
            self._published = seen, now
            self._topic.publish(seen)

    def _wall(self) -> float:
        return EPOCH.timestamp() + self._events.now / 1000


# ---- the world of several brokers ----


class WatchedDisk(Disk):
    """A disk that knows the time in ms since which it is full or free; None if it isn't.

    Attributes:
        full_since: since when it is at its hard limit without a break.
        appended_full: bytes that clients have appended since it was full.
        low_since: since when it is at ``low`` or below, where a PAUSE may end.
        calm_since: since when it is not above its soft limit.
    """

    full_since: int | None = None
    low_since: int | None = None
    calm_since: int | None = None
    appended_full = 0

    def __init__(self, world: World, index: int) -> None:
        self._world = world
        super().__init__(world, index)
        plan, events = world.scene.disks[index], world.events
        if isinstance(plan, BusyDisk):
            for begin, end, rate in plan.others:
                for ms in range(begin, end, _LUMP):
                    events.at(ms, partial(super().append, int(rate * _LUMP / 1000)))
            for ms, size in plan.cleanups:
                events.at(ms, partial(self.free, size))

    @cached_property
    def low(self) -> int:
        """The most used bytes at which a PAUSE may end."""
        return self.bounds.lets_go_at(self._world.settings.pause_resume_free_share)

    def append(self, size: int) -> None:
        """Count the bytes that clients append although the disk is full."""
        super().append(size)
        if self.full_since is not None:
            self.appended_full += size

    def changed(self) -> None:
        """Note the times since which the disk is in its current state."""
        self.full_since = self._since(self.full_since, self.used >= self.bounds.hard)
        if self.full_since is None:
            self.appended_full = 0
        self.low_since = self._since(self.low_since, self.used <= self.low)
        soft = min(self.bounds.soft, self.bounds.hard - 1)
        self.calm_since = self._since(self.calm_since, self.used <= soft)

    def _since(self, before: int | None, holds: bool) -> int | None:
        return None if not holds else self._events.now if before is None else before


class MortalBroker(Broker):
    """A broker that may die, and whose host may hang until Java's ``Lease`` puts ``fallback.action`` into force."""

    hung_since: int | None = None  # the time in ms since which the host hangs; None while it answers
    answers_since = 0  # the time in ms since which the host answers
    fallback: float | None = None  # the factor in force in place of the host's; None while the lease is valid

    def __init__(self, world: Cluster, index: int, source: OwnDisk) -> None:
        """Make the broker with this index."""
        super().__init__(world, index, source)
        self._world = world
        # Lease.check() expires the lease one interval early, since the next check comes only after that.
        self._lease = ms(world.settings.validity) - LEASE
        self._instead = float(State(world.settings.fallback_action) is State.OPEN)

    @property
    def hung(self) -> bool:
        """Whether the host hangs."""
        return self.hung_since is not None

    def start(self) -> None:
        """Put the broker into service, with a new host that answers."""
        self.hung_since, self.answers_since, self.fallback = None, self.events.now, None
        super().start()

    def stop(self) -> None:
        """Let the broker die: nobody writes to it, and its host decides nothing."""
        self.up, self.hung_since = False, None
        self.source.life += 1

    def hang(self, until: int) -> None:
        """Let a plugin hang until then, and the host with it. A host that starts meanwhile does not hang."""
        if self.up:
            self.hung_since, life = self.events.now, self.source.life
            self.events.at(until, lambda: self._answer(life))

    def _answer(self, life: int) -> None:
        if life == self.source.life:
            self.hung_since, self.answers_since = None, self.events.now
            self._host(life)

    def append(self, client: Client) -> int:
        """Append also on the disks of its replicas whose brokers live."""
        plan = client.plan
        for replica in plan.replicas:
            if self._world.brokers[replica].up:
                self._world.disks[replica].append(plan.batch)
        mute = super().append(client)
        return min(mute, plan.every) if isinstance(plan, Reconnecting) else mute

    @property
    def _in_force(self) -> tuple[float, Affected | None]:
        return super()._in_force if self.fallback is None else (self.fallback, None)

    def _host(self, life: int) -> None:
        if not self.hung:
            super()._host(life)

    def _watch(self, life: int) -> None:
        # A host that doesn't hang renews the lease every TAKE, even if it rarely reads the factor sources.
        silent = self.hung_since is not None and self.events.now - self.hung_since >= self._lease
        if life == self.source.life and silent is (self.fallback is None):
            self.fallback = self._instead if silent else None
            self._follow()
        super()._watch(life)


class Cluster(World):
    """Brokers that learn of each other's disks, die and hang. A single broker has no topic."""

    scene: ClusterScene
    brokers: list[MortalBroker]  # type: ignore[assignment]  # it has no others
    disks: list[WatchedDisk]  # type: ignore[assignment]

    def __init__(self, scene: ClusterScene) -> None:
        super().__init__(scene)
        for index, dies, back in scene.deaths:
            self._death(self.brokers[index], dies, back)
        for index, begins, ends in scene.hangs:
            self.events.at(begins, partial(self.brokers[index].hang, ends))

    @cached_property
    def topic(self) -> Topic | None:
        """The topics through which several brokers learn of each other."""
        return Topic(self.scene, self.settings, self.events) if len(self.scene.disks) > 1 else None

    def disk(self, index: int) -> WatchedDisk:
        """Make a disk that the checks watch."""
        return WatchedDisk(self, index)

    def broker(self, index: int) -> MortalBroker:
        """Make a broker that may die and hang."""
        return MortalBroker(self, index, Source(self, index, self.topic) if self.topic else OwnDisk(self, index))

    def _death(self, broker: MortalBroker, dies: int, back: int) -> None:
        def fence() -> None:
            if self.topic and not broker.up:
                self.topic.fence(str(broker.index + 1), True)

        def die() -> None:
            broker.stop()
            self.events.after(SESSION, fence)

        self.events.at(dies, die)
        self.events.at(back, broker.start)
