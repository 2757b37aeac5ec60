"""The factor source ``cluster-volumes``: one record for the whole cluster, as the pipeline sums the snapshots up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quotahost.api import Context, Metrics
from quotahost.model import ClusterVolumes, Factor
from quotahost.plugins.factor_sources.cluster_volumes.failover import Heard, Turns
from quotahost.plugins.factor_sources.cluster_volumes.reader import ClusterReader
from quotahost.plugins.factor_sources.cluster_volumes.standby import Second
from quotahost.plugins.factor_sources.cluster_volumes.state import ClusterState, Told
from quotahost.plugins.kafka.registered_brokers import RegisteredBrokers
from quotahost.records.cluster_volumes import ClusterRecord

# TODO(merge) What the metrics show of the cluster's record.


_NOTHING: Final = Told((), (), False, 0, 0)


class ClusterVolumesSource:
    """What a broker reads doesn't grow with the cluster: one record, made of all brokers' snapshots by the pipeline.

    This broker's own volumes are looked at directly. While no record comes, ``factor.source.second`` answers: it is
    built after half of ``validity``, asked after ``validity``, and until it knows enough to answer, what the last
    record told counts on. Needs the pipeline, and the task ``publish-volumes`` on every broker.
    """

    def __init__(
        self,
        context: Context,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to read. ``wall`` in seconds since the epoch, ``clock`` monotonic."""
        self._context, self._own = context, str(context.node_id)
        self._state = ClusterState(self._own, clock)
        self._second = Second(context, clock)
        self._turns = Turns(context, clock)
        self._show = ClusterShow(context.metrics, clock)
        self._reader = ClusterReader(context, clock, wall)
        self._disks = context.disks
        self._registered_brokers = RegisteredBrokers(context, self._state.register)
        self._whole = _NOTHING
        self._told: ClusterVolumes | None = None
        self._reader.follow(self._disks.cluster_id)

    def read(self) -> ClusterVolumes | Factor:
        """What is known now; the same object as long as it is the same."""
        self._reader.follow(self._disks.cluster_id)
        answer = self._answer()
        if isinstance(answer, Factor):
            return answer
        if answer != self._told:
            self._told = answer
        return self._told or answer

    def close(self) -> None:
        """End the threads and the clients, the second source's, too."""
        self._reader.close()
        self._registered_brokers.close()
        self._second.close()

    def _answer(self) -> ClusterVolumes | Factor:
        host = self._context.settings
        record, age = self._reader.known()
        grace, expiry = host.startup_grace.total_seconds(), host.snapshots_expiry.total_seconds()
        told = self._held(self._state.of(record, grace, expiry)) if record else _NOTHING
        heard = Heard(age if record else None, self._reader.answered, told.patient)
        turn = self._turns.now(heard, self._second.name)
        self._show.record(record, age, None if turn.by_second else told)
        self._second.want(turn.second_wanted)
        second = self._second.read(turn.by_second) if turn.second_wanted else None
        if second is None or not turn.by_second:
            return self._mine(self._too_old(told) if turn.overdue and record else told)
        if isinstance(second, Factor):
            return second
        if self._second.ready:
            return self._with_own_disks(second)
        return self._mine(replace(told, unknown=(*told.unknown, *second.unknown)), second.waiting)

    def _held(self, told: Told) -> Told:
        """While brokers are left out that are not missed yet, what was known before counts for them."""
        if not told.patient:
            self._whole = told
            return told
        listed = {(volume.broker, volume.name) for volume in told.volumes}
        before = (volume for volume in self._whole.volumes if (volume.broker, volume.name) not in listed)
        return replace(told, volumes=(*told.volumes, *before))

    def _too_old(self, told: Told) -> Told:
        """Without its age: who compares sentences would see a new one every second."""
        validity = self._context.settings.validity.total_seconds()
        unknown = f"the newest record of the cluster's volumes is older than validity ({validity:g} s)"
        return replace(told, volumes=(), unknown=(unknown,))

    def _mine(self, told: Told, waiting: str = "") -> ClusterVolumes:
        """This broker's own disks, and what a record tells of the others'."""
        own = self._disks.known()
        waiting = waiting or self._waits_for() or own.waiting
        return ClusterVolumes(own.volumes + told.volumes, own.unknown + told.unknown, waiting)

    def _with_own_disks(self, answer: ClusterVolumes) -> ClusterVolumes:
        """The second source need not look at this broker's own disks."""
        if any(volume.broker == self._own for volume in answer.volumes):
            return answer
        own = self._disks.known()
        unknown = tuple(dict.fromkeys(own.unknown + answer.unknown))
        return ClusterVolumes(own.volumes + answer.volumes, unknown, answer.waiting or own.waiting)

    def _waits_for(self) -> str:
        if waits_for := self._reader.waits_for():
            return waits_for
        return "" if self._registered_brokers.answered else "the cluster has not told its brokers yet"


_TYPE: Final = "ClusterRecord"


class ClusterShow:
    """Shows its numbers once a second."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float]) -> None:
        """``clock`` monotonic, in seconds."""
        self._metrics, self._clock = metrics, clock
        self._due = clock()

    def record(self, record: ClusterRecord | None, age: float, told: Told | None) -> None:
        """The newest record, its age in seconds, and what it tells if it is what holds."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + 1
        if record is None or age == math.inf:
            self._metrics.forget(_TYPE, "")
        else:
            for attribute, value in (("Age", age), ("Run", record.run), ("Sequence", record.sequence)):
                self._metrics.gauge(_TYPE, "", attribute, value)
        if told is not None:
            self._metrics.gauge("Brokers", "", "Stale", told.stale)
            self._metrics.gauge("Brokers", "", "Missing", told.missing)
