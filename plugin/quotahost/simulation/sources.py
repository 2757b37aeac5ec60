"""What a broker's host knows of the disks: its own by looking, the others' by their snapshots.

With one broker it is the factor source ``local``, with several ``snapshots``: the real roster keeps them, and the real
rule says which change is worth a record at once. The topic, its way and its losses are modelled.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from quotahost.model import ClusterVolumes
from quotahost.plugins.factor_sources.expected import Patience
from quotahost.plugins.factor_sources.roster import Roster
from quotahost.plugins.tasks.publish_volumes import is_news
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings
from quotahost.simulation.disk import Disk
from quotahost.simulation.events import Events
from quotahost.simulation.scene import Scene

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
SESSION: Final = 9000  # ms, broker.session.timeout.ms: after that a silent broker is fenced


class Topic:
    """The compacted topic of snapshots, and who is registered.

    Attributes:
        disturbed_until: until when, in ms, somebody may know less than the newest snapshots say.
    """

    def __init__(self, scene: Scene, settings: Settings, events: Events) -> None:
        self._way, self._events = scene.way, events
        self._rnd = random.Random(scene.seed * 1013 + 7)
        self._period = int(settings.snapshots_period.total_seconds() * 1000)
        self._sources: list[Source] = []
        self._kept: dict[str, tuple[Snapshot, int]] = {}
        self.registered: dict[str, bool] = {}
        self.disturbed_until = 0

    def join(self, source: Source) -> None:
        """A broker reads from now on; it is registered and in service."""
        self._sources.append(source)
        self.registered[source.own] = False

    def fence(self, broker: str, fenced: bool) -> None:
        """The controllers have noticed that a broker died, or is back; all brokers learn it."""
        self.registered[broker] = fenced
        for each in self._sources:
            each.roster.register(self.registered)

    def publish(self, snapshot: Snapshot) -> None:
        """Hand a snapshot to all readers, each after a time of its own, unless it is lost."""
        now, way = self._events.now, self._way
        index = int(snapshot.broker) - 1
        silent = any(which == index and begin <= now < end for which, begin, end in way.silences)
        if silent or (way.lost and self._rnd.random() < way.lost):
            self.disturbed_until = now + self._period + way.slowest
            return
        self._kept[snapshot.broker] = snapshot, now
        for each in self._sources:
            if each.own != snapshot.broker:
                delay = self._rnd.randint(way.fastest, way.slowest)
                self._events.after(delay, partial(each.arrive, snapshot, now, each.life))

    def replay(self, source: Source) -> None:
        """What a broker that starts finds in the topic."""
        for snapshot, written in self._kept.values():
            if snapshot.broker != source.own:
                source.take(snapshot, written, live=False)


class Source:
    """A factor source whose ``read`` the host calls; it also looks at its own disk, and publishes that.

    Attributes:
        own: the broker's id.
        topics: those with a replica on its disk.
        known: its own volume, when it looked last.
        roster: what it knows of the others.
        life: how often it has started.
    """

    def __init__(
        self, own: str, disk: Disk, topics: frozenset[str], settings: Settings, topic: Topic | None, events: Events
    ) -> None:
        self.own, self._disk, self._settings, self._topic, self._events = own, disk, settings, topic, events
        self.topics = topics
        self._period = int(settings.volumes_period.total_seconds() * 1000)
        self._publish_every = int(settings.snapshots_period.total_seconds() * 1000)
        self._validity = settings.validity.total_seconds()
        self._patience = Patience.of(settings)
        self.life = 0
        self.roster = Roster(events.clock, self._wall)
        if topic:
            topic.join(self)

    def start(self) -> None:
        """Look at the disk, and read the topic."""
        self.life += 1
        self.known = ClusterVolumes(())
        self._last: ClusterVolumes | None = None
        self._published: tuple[Snapshot, int] | None = None
        self.roster = Roster(self._events.clock, self._wall)
        if self._topic:
            self._topic.fence(self.own, False)
            self._topic.replay(self)
        life = self.life
        self._look(life)

    def stop(self) -> None:
        """The broker is dead."""
        self.life += 1

    def read(self) -> ClusterVolumes:
        """As ``quotahost.plugins.factor_sources.local`` and ``snapshots`` do."""
        if self._topic is None:
            return self.known
        others = [each for each in self.roster.known(self._patience) if each.broker != self.own]
        answer = ClusterVolumes(
            self.known.volumes + tuple(v for each in others if each.snapshot for v in each.snapshot.volumes),
            tuple(each.problem for each in others if each.problem and not each.awaited),
            next((each.problem for each in others if each.awaited and each.age is not None), ""),
        )
        if answer != self._last:
            self._last = answer
        return self._last or answer

    def arrive(self, snapshot: Snapshot, written: int, life: int) -> None:
        """A live record; a broker that died meanwhile reads it when it is back."""
        if life == self.life:
            self.take(snapshot, written, live=True)

    def take(self, snapshot: Snapshot, written: int, live: bool) -> None:
        """Keep it if it is the newest."""
        self.roster.take(snapshot, live, self._validity, int(_EPOCH.timestamp() * 1000) + written)

    def _look(self, life: int) -> None:
        if life != self.life:
            return
        volume, used = self._disk.volume, self._disk.used()
        if not self.known.volumes or self.known.volumes[0].consumed != used:
            topics = self.topics if self._disk.bounds.may_lower(used) else None  # as quotahost.disks.monitor
            now = replace(volume, consumed=used, topics=topics)
            self.known = ClusterVolumes((now,))
        if self._topic:
            self._offer(self._topic)
        self._events.after(self._period, lambda: self._look(life))

    def _offer(self, topic: Topic) -> None:
        now = self._events.now
        soft, hard = self._settings.storage_soft, self._settings.storage_hard
        seen = Snapshot(self.own, _EPOCH + timedelta(milliseconds=now), self.known.volumes, soft, hard, age_ms=0)
        if self._published and now - self._published[1] < self._publish_every and not is_news(self._published[0], seen):
            return
        self._published = seen, now
        topic.publish(seen)

    def _wall(self) -> float:
        return _EPOCH.timestamp() + self._events.now / 1000
