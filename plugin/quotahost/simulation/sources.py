"""What a broker's host knows of the disks: its own by looking, the others' by their snapshots.

With one broker it is the factor source ``local``, with several ``snapshots``, or with a pipeline the real
``cluster-volumes``. The real roster keeps the snapshots, and the real rule says which change is worth a record at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias, cast

from quotahost.api import Context
from quotahost.broker.plugins.factor_sources.cluster_volumes import ClusterVolumesSource, Parts
from quotahost.broker.plugins.factor_sources.liveness import Patience
from quotahost.broker.plugins.factor_sources.snapshots import Roster
from quotahost.broker.plugins.tasks.publish_volumes import is_news
from quotahost.kafka.latest_record import LatestRecord
from quotahost.model import ClusterVolumes, Factor
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings
from quotahost.simulation.disk import Disk
from quotahost.simulation.events import Events
from quotahost.simulation.pipeline import CLUSTER, EPOCH
from quotahost.simulation.topic import Topic
from quotahost.testing.broker import FakeBroker

if TYPE_CHECKING:
    from quotahost.api.disks import Disks
    from quotahost.broker.plugins.factor_sources.cluster_record import RecordReader
    from quotahost.broker.plugins.factor_sources.cluster_volumes import Standby
    from quotahost.kafka.registered_brokers import RegisteredBrokers
log = logging.getLogger("quotahost.simulation")
Register: TypeAlias = Callable[[Mapping[str, bool]], None]


class Answered:
    """Stands for ``RegisteredBrokers``: the cluster answers at once."""

    answered = True


class Reader:
    """Stands for ``RecordReader``: what is in the topic has been read."""

    topic_read = True

    def __init__(self, records: LatestRecord[ClusterRecord]) -> None:
        self.known = records.known

    def follow(self, cluster_id: str) -> None:
        """The topic brings the records itself."""

    def waits_for(self) -> str:
        """As ``RecordReader`` says it."""
        return "" if self.known()[0] else "there is no record of this cluster yet"


class OwnDisks:
    """This broker's disk as the host's monitor shows it."""

    cluster_id = CLUSTER

    def __init__(self, source: Source) -> None:
        self._source = source

    def known(self) -> ClusterVolumes:
        """The newest look."""
        return self._source.known


class BySnapshots:
    """Stands for ``Standby``: the source ``snapshots``, which is built at once and has read its topic."""

    def __init__(self, source: Source) -> None:
        self._source, self.ready = source, False

    def keep(self, needed: bool) -> None:
        """It costs nothing."""
        self.ready = self.ready and needed

    def read(self, answers: bool) -> ClusterVolumes:
        """What it says."""
        answer = self._source.by_snapshots()
        self.ready = self.ready or not answer.waiting
        return answer


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
        self._cluster: ClusterVolumesSource | None = None
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
        self._cluster = self._cluster_volumes() if self._topic and self._topic.pipeline else None
        if self._topic:
            self._topic.fence(self.own, False)
            self._topic.replay(self)
        life = self.life
        self._look(life)

    def stop(self) -> None:
        """The broker is dead."""
        self.life += 1

    def read(self) -> ClusterVolumes | Factor:
        """As ``broker.plugins.factor_sources.local`` and ``snapshots`` do, or by ``cluster-volumes`` itself."""
        if self._topic is None:
            return self.known
        return self.by_snapshots() if self._cluster is None else self._cluster.read()

    def by_snapshots(self) -> ClusterVolumes:
        """What ``snapshots`` says, which also stands by for ``cluster-volumes``."""
        others = [each for each in self.roster.known(self._patience) if each.broker != self.own]
        answer = ClusterVolumes(
            self.known.volumes + tuple(v for each in others if each.snapshot for v in each.snapshot.volumes),
            tuple(each.problem for each in others if each.problem and not each.awaited),
            next((each.problem for each in others if each.awaited and each.age is not None), ""),
        )
        if answer != self._last:
            self._last = answer
        return self._last or answer

    def register(self, brokers: dict[str, bool]) -> None:
        """These brokers are registered, and fenced or not."""
        self.roster.register(brokers)
        if self._cluster is not None:
            self._register(brokers)

    def arrive(self, snapshot: Snapshot, written: int, life: int) -> None:
        """A live record; a broker that died meanwhile reads it when it is back."""
        if life == self.life:
            self.take(snapshot, written, live=True)

    def take(self, snapshot: Snapshot, written: int, live: bool) -> None:
        """Keep it if it is the newest."""
        self.roster.take(snapshot, live, self._validity, int(EPOCH.timestamp() * 1000) + written)

    def arrive_record(self, record: ClusterRecord, written: int, life: int) -> None:
        """A live record of the cluster."""
        if life == self.life:
            self.take_record(record, written, live=True)

    def take_record(self, record: ClusterRecord, written: int, live: bool) -> None:
        """Keep it if it is the newest, as ``RecordReader`` does."""
        self._records.take(record, live, self._validity, int(EPOCH.timestamp() * 1000) + written)

    def _cluster_volumes(self) -> ClusterVolumesSource:
        """The real source, with a reader and a standby of the simulator's."""
        self._records = LatestRecord[ClusterRecord](self._events.clock, self._wall)
        broker = FakeBroker()
        own = Context("cluster-volumes", None, self._settings, int(self.own), log, broker=broker, metrics=broker)
        own.open_disks = lambda: cast("Disks", OwnDisks(self))
        reader = cast("RecordReader", Reader(self._records))
        standby = cast("Standby", BySnapshots(self))

        def brokers(register: Register) -> RegisteredBrokers:
            self._register = register
            return cast("RegisteredBrokers", Answered())

        return ClusterVolumesSource(own, self._wall, self._events.clock, Parts(reader, standby, brokers))

    def _look(self, life: int) -> None:
        if life != self.life:
            return
        volume, used = self._disk.volume, self._disk.used()
        if not self.known.volumes or self.known.volumes[0].consumed != used:
            topics = self.topics if self._disk.bounds.may_lower(used) else None  # as quotahost.broker.disks.monitor
            now = replace(volume, consumed=used, topics=topics)
            self.known = ClusterVolumes((now,))
        if self._topic:
            self._offer(self._topic)
        self._events.after(self._period, lambda: self._look(life))

    def _offer(self, topic: Topic) -> None:
        now = self._events.now
        soft, hard = self._settings.storage_soft, self._settings.storage_hard
        seen = Snapshot(self.own, EPOCH + timedelta(milliseconds=now), self.known.volumes, soft, hard, age_ms=0)
        if self._published and now - self._published[1] < self._publish_every and not is_news(self._published[0], seen):
            return
        self._published = seen, now
        topic.publish(seen)

    def _wall(self) -> float:
        return EPOCH.timestamp() + self._events.now / 1000
