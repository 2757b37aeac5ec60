"""The compacted topics of snapshots and of cluster records, on their ways to the readers, and who is registered.

Each record takes a time of its own to each reader, or is lost.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings
from quotahost.simulation.events import Events
from quotahost.simulation.pipeline import Pipeline
from quotahost.simulation.scene import Scene

if TYPE_CHECKING:
    from quotahost.simulation.sources import Source

SESSION: Final = 9000  # ms, broker.session.timeout.ms: after that a silent broker is fenced


class Topic:
    """Both topics, with the pipeline between them if the scene has one.

    Attributes:
        registered: by broker, whether it is fenced.
        pipeline: reads the one and writes the other; None without one.
        slowest: ms after which a broker's news has come to all others, unless it is lost.
        disturbed_until: until when, in ms, somebody may know less than the newest snapshots say.
    """

    def __init__(self, scene: Scene, settings: Settings, events: Events) -> None:
        self._way, self._events = scene.way, events
        self._rnd = random.Random(scene.seed * 1013 + 7)
        self._period = round(settings.snapshots_period.total_seconds() * 1000)
        self._sources: list[Source] = []
        self._snapshots: dict[str, tuple[Snapshot, int]] = {}
        self._record: tuple[ClusterRecord, int] | None = None
        self.registered: dict[str, bool] = {}
        self.disturbed_until = 0
        self.pipeline = scene.pipeline and Pipeline(scene.pipeline, settings, self, events)
        more = scene.pipeline.tick + scene.way.slowest if scene.pipeline else 0
        self.slowest = scene.way.slowest + more

    def join(self, source: Source) -> None:
        """A broker reads from now on; it is registered and in service."""
        self._sources.append(source)
        self.registered[source.own] = False

    def fence(self, broker: str, fenced: bool) -> None:
        """The controllers have noticed that a broker died, or is back; all brokers learn it."""
        self.registered[broker] = fenced
        for each in self._sources:
            each.register(self.registered)

    def disturb(self, ms: int) -> None:
        """Somebody may know less than he should, until so long after now."""
        self.disturbed_until = max(self.disturbed_until, self._events.now + ms + self.slowest)

    def publish(self, snapshot: Snapshot) -> None:
        """Hand a snapshot to all readers, each after a time of its own, unless it is lost."""
        now, way = self._events.now, self._way
        index = int(snapshot.broker) - 1
        silent = any(which == index and begin <= now < end for which, begin, end in way.silences)
        if silent or self._is_lost():
            self.disturb(self._period)
            return
        self._snapshots[snapshot.broker] = snapshot, now
        for each in self._sources:
            if each.own != snapshot.broker:
                self._events.after(self._delay(), partial(each.arrive, snapshot, now, each.life))
        if self.pipeline:
            launches = self.pipeline.launches
            self._events.after(self._delay(), partial(self.pipeline.arrive, snapshot, now, launches))

    def publish_record(self, record: ClusterRecord) -> None:
        """Hand the pipeline's record to all brokers likewise."""
        now = self._events.now
        if self._is_lost():
            self.disturb(0)
            return
        self._record = record, now
        for each in self._sources:
            self._events.after(self._delay(), partial(each.arrive_record, record, now, each.life))

    def kept(self) -> Iterator[tuple[Snapshot, int]]:
        """The snapshots in the topic, and when each was written, in ms."""
        return iter(self._snapshots.values())

    def replay(self, source: Source) -> None:
        """What a broker that starts finds in the topics."""
        for snapshot, written in self.kept():
            if snapshot.broker != source.own:
                source.take(snapshot, written, live=False)
        if self._record:
            source.take_record(*self._record, live=False)

    def _delay(self) -> int:
        return self._rnd.randint(self._way.fastest, self._way.slowest)

    def _is_lost(self) -> bool:
        return self._way.lost > 0 and self._rnd.random() < self._way.lost
