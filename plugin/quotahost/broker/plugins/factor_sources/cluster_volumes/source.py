"""The factor source ``cluster-volumes`` as the host calls it; the package's docstring says how its parts play together.

This module only puts the parts together: this broker's own disks, the view of the newest record, and the standby
source. The answer goes to the policy, which turns each volume into a factor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from quotahost.api import Context
from quotahost.broker.plugins.factor_sources.cluster_volumes.failover import Answerer, Failover
from quotahost.broker.plugins.factor_sources.cluster_volumes.reader import RecordReader
from quotahost.broker.plugins.factor_sources.cluster_volumes.standby import Standby
from quotahost.broker.plugins.factor_sources.cluster_volumes.state import ClusterState, ClusterView
from quotahost.broker.plugins.factor_sources.expected import Patience
from quotahost.kafka.registered_brokers import RegisteredBrokers
from quotahost.model import ClusterVolumes, Factor, Volume
from quotahost.records.cluster_volumes import ClusterRecord


@dataclass(frozen=True, slots=True)
class Parts:
    """What connects the source to Kafka; the simulator of the loop has its own.

    Attributes:
        reader: of the pipeline's records.
        standby: the factor source that answers while none come.
        brokers: makes what hands on the registered brokers.
    """

    reader: RecordReader
    standby: Standby
    brokers: Callable[[Callable[[Mapping[str, bool]], None]], RegisteredBrokers]


class ClusterVolumesSource:
    """Reports the volumes of the pipeline's record, and this broker's own disks as the host's monitor sees them.

    It needs the pipeline, and the task ``publish-volumes`` on every broker.
    """

    def __init__(
        self,
        context: Context,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        parts: Parts | None = None,
    ) -> None:
        """Begin to read. ``wall`` in seconds since the epoch, ``clock`` monotonic; without ``parts`` from Kafka."""
        self._context, self._clock, self._own = context, clock, str(context.node_id)
        self._state = ClusterState(self._own, clock)
        parts = parts or Parts(
            RecordReader(context, clock, wall), Standby(context, clock), partial(RegisteredBrokers, context)
        )
        self._reader, self._standby = parts.reader, parts.standby
        self._failover = Failover(context, clock)
        self._disks = context.disks
        self._registered_brokers = parts.brokers(self._state.register)
        self._show_at = clock()
        self._last: ClusterVolumes | None = None
        self._reader.follow(self._disks.cluster_id)

    def read(self) -> ClusterVolumes | Factor:
        """The volumes and unknowns of the cluster; the same object as long as nothing has changed."""
        self._reader.follow(self._disks.cluster_id)  # the id may be unknown until the disks have answered
        answer = self._answer()
        if isinstance(answer, Factor):
            return answer
        # The host judges all volumes again only for another object.
        if answer != self._last:
            self._last = answer
        return self._last or answer

    def close(self) -> None:
        """End the threads and the clients, those of the standby source, too."""
        self._reader.close()
        self._registered_brokers.close()
        self._standby.close()

    def _answer(self) -> ClusterVolumes | Factor:
        record, age = self._reader.known()
        view = self._state.view(record, Patience.of(self._context.settings))
        answerer = self._failover.decide(age, self._reader.topic_read, view.complete, self._standby.name)
        self._show(record, age, None if answerer is Answerer.STANDBY else view)
        self._standby.keep(answerer.needs_standby)
        if answerer.needs_standby:
            # While the record still answers, the standby is read only so that it is ready in time.
            standby = self._standby.read(answers=answerer is Answerer.STANDBY)
            if answerer is Answerer.STANDBY:
                return self._by_standby(standby, view)
        return self._by_record(self._too_old(view) if record and answerer is Answerer.NOBODY else view)

    def _by_record(self, view: ClusterView, waiting: str = "") -> ClusterVolumes:
        """This broker's own disks, and what the view says of the others'."""
        own = self._disks.known()
        waiting = waiting or self._waits_for() or view.waiting or own.waiting
        others = tuple(self._as_full_as_now(each, own.volumes) for each in view.volumes)
        return ClusterVolumes(own.volumes + others, own.unknown + view.unknown, waiting)

    def _as_full_as_now(self, listed: Volume, own: Iterable[Volume]) -> Volume:
        """A volume of this broker that the record lists for all of its kind, with what its disk holds now.

        The record is older than the look at the disk, and a volume that is there twice, full and not full, would be
        out of its PAUSE at once (``quotahost.broker.host.pauses``).
        """
        storage = self._context.settings
        for each in own:
            kind = each.broker, each.name, each.capacity
            limits = each.soft or storage.storage_soft, each.hard or storage.storage_hard
            if kind == (listed.broker, listed.name, listed.capacity) and limits == (listed.soft, listed.hard):
                return replace(listed, consumed=max(listed.consumed, each.consumed))
        return listed

    def _by_standby(self, answer: ClusterVolumes | Factor, view: ClusterView) -> ClusterVolumes | Factor:
        if isinstance(answer, Factor):
            return answer
        if not self._standby.ready:
            # Until the standby knows enough, the last record holds, so that no full disk is forgotten in between.
            return self._by_record(replace(view, unknown=view.unknown + answer.unknown), answer.waiting)
        # The sources snapshots and local have this broker's disks in their answer, and no volume may count twice.
        if any(volume.broker == self._own for volume in answer.volumes):
            return answer
        own = self._disks.known()  # not every factor source looks at this broker's own disks
        # Both may say the same sentence of the same disk.
        unknown = tuple(dict.fromkeys(own.unknown + answer.unknown))
        return ClusterVolumes(own.volumes + answer.volumes, unknown, answer.waiting or own.waiting)

    def _too_old(self, view: ClusterView) -> ClusterView:
        # The sentence names no age: the cause of the factor would be a new one every second.
        validity = self._context.settings.validity.total_seconds()
        unknown = f"the newest record of the cluster's volumes is older than validity ({validity:g} s)"
        return replace(view, volumes=(), unknown=(unknown,))

    def _waits_for(self) -> str:
        if waits_for := self._reader.waits_for():
            return waits_for
        return "" if self._registered_brokers.answered else "the cluster has not listed its brokers yet"

    def _show(self, record: ClusterRecord | None, age: float, view: ClusterView | None) -> None:
        """Show the record once a second, and if it answers, the numbers of stale and missing brokers of its view."""
        if self._clock() < self._show_at:
            return
        self._show_at = self._clock() + 1
        metrics = self._context.metrics
        # After a tombstone the record's numbers say nothing any more.
        if record is None or age == math.inf:
            metrics.forget("ClusterRecord", "")
        else:
            for attribute, value in (("Age", age), ("Run", record.run), ("Sequence", record.sequence)):
                metrics.gauge("ClusterRecord", "", attribute, value)
        if view is not None:
            metrics.gauge("Brokers", "", "Stale", view.stale)
            metrics.gauge("Brokers", "", "Missing", view.missing)
            metrics.gauge("Brokers", "", "LastKnown", view.last_known)
