"""The Spark pipeline: snapshots in, one record for the cluster out, and the times at which it is down.

Modelled is what ``quotahost.pipeline.volumes`` says in SQL, for the few brokers of a scene: a broker is stale once its
newest snapshot is older than ``validity``; of each kind of volumes the fullest is listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from quotahost.model import Volume
from quotahost.model.bounds import bounds
from quotahost.records.cluster_volumes import ClusterRecord, Filling
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings
from quotahost.simulation.events import Events
from quotahost.simulation.scene import PipelinePlan

if TYPE_CHECKING:
    from quotahost.simulation.topic import Topic

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
CLUSTER: Final = "simulated"


class Pipeline:
    """Reads the snapshots as they come to it, and publishes a record every tick while it runs."""

    def __init__(self, plan: PipelinePlan, settings: Settings, topic: Topic, events: Events) -> None:
        self._plan, self._topic, self._events = plan, topic, events
        self._validity = round(settings.validity.total_seconds() * 1000)
        self._newest: dict[str, tuple[Snapshot, int]] = {}
        self._run = self._sequence = self._launches = 0
        self._launch()
        for dies, back in plan.deaths:
            events.at(dies, self._die)
            events.at(back, self._launch)

    def arrive(self, snapshot: Snapshot, written: int, launches: int) -> None:
        """A snapshot that was written at that time, in ms, unless the pipeline was launched anew meanwhile."""
        kept = self._newest.get(snapshot.broker)
        if launches == self._launches and (kept is None or kept[0].captured_at <= snapshot.captured_at):
            self._newest[snapshot.broker] = snapshot, written

    @property
    def launches(self) -> int:
        """How often it has been launched or has died."""
        return self._launches

    def _launch(self) -> None:
        self._launches += 1
        self._run, self._sequence = int(EPOCH.timestamp() * 1000) + self._events.now, 0
        self._newest = {snapshot.broker: (snapshot, written) for snapshot, written in self._topic.kept()}
        self._tick(self._launches)

    def _die(self) -> None:
        self._launches += 1
        self._topic.disturb(self._validity)  # then the standby answers

    def _tick(self, launches: int) -> None:
        if launches != self._launches:
            return
        if self._newest:
            self._sequence += 1
            self._topic.publish_record(self._record())
        self._events.after(self._plan.tick, partial(self._tick, launches))

    def _record(self) -> ClusterRecord:
        now, registered = self._events.now, self._topic.registered
        stale = {broker for broker, (_, written) in self._newest.items() if now - written > self._validity}
        fresh = self._newest.keys() - stale
        volumes = [volume for broker in fresh for volume in _volumes(self._newest[broker][0])]
        silent = [volume for broker in stale for volume in _volumes(self._newest[broker][0])]
        return ClusterRecord(
            CLUSTER,
            self._run,
            self._sequence,
            EPOCH + timedelta(milliseconds=now),
            max(snapshot.captured_at for snapshot, _ in self._newest.values()),
            reporting=sum(not registered.get(broker, True) for broker in fresh),
            stale=len(stale),
            missing=len(registered.keys() - self._newest.keys()),
            stale_brokers=tuple(sorted(stale)),
            missing_brokers=tuple(sorted(registered.keys() - self._newest.keys())),
            volume_count=len(volumes),
            fullest=tuple(Filling(each) for each in _fullest(volumes)),
            silent=tuple(Filling(each) for each in _fullest(silent)),
            affected=_affected(volumes + silent),
        )


def _volumes(snapshot: Snapshot) -> Iterator[Volume]:
    return iter(snapshot.volumes)


def _fullest(volumes: list[Volume]) -> list[Volume]:
    """Of each kind the volume that consumes most."""
    kinds: dict[object, Volume] = {}
    for each in volumes:
        kind = each.capacity, each.soft, each.hard
        if kind not in kinds or kinds[kind].consumed < each.consumed:
            kinds[kind] = each
    return list(kinds.values())


def _affected(volumes: list[Volume]) -> frozenset[str] | None:
    """The topics of all volumes above their soft limits; None if one of them doesn't tell."""
    topics: set[str] = set()
    for each in volumes:
        found = bounds(each, each.soft, each.hard)
        if found and found.breaches_soft(each.consumed):
            if each.topics is None:
                return None
            topics |= each.topics
    return frozenset(topics)
