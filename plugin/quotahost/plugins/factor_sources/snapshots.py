"""The factor source ``snapshots``: every broker's volumes, out of the compacted topic of snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable

from quotahost.api import Context
from quotahost.model import ClusterVolumes
from quotahost.plugins.factor_sources.roster import Known, Roster
from quotahost.plugins.kafka.follower import Follower
from quotahost.plugins.kafka.registered_brokers import RegisteredBrokers
from quotahost.records.codec import Refused
from quotahost.records.snapshot import decode
from quotahost.text import printable


class Snapshots:
    """Reads the whole topic at the start, and follows it (proposal 035, "The data sink").

    This broker's own volumes are looked at directly, so that its own disk counts from the first request on,
    whatever becomes of the topic. Needs the task ``publish-volumes`` on every broker.
    """

    def __init__(
        self,
        context: Context,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to read. ``wall`` in seconds since the epoch, ``clock`` monotonic."""
        self._context, self._own = context, str(context.node_id)
        self._clock, self._roster = clock, Roster(clock, wall)
        self._caught_up = False
        self._told: ClusterVolumes | None = None
        self._shown: set[str] = set()
        self._show_at = 0.0
        self._disks = context.disks
        self._registered_brokers = RegisteredBrokers(context, self._roster.register)
        silence = 3 * context.settings.snapshots_period.total_seconds() + 10
        self._follower = Follower(context, context.settings.snapshots_topic, self, silence)

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool) -> None:
        """See quotahost.plugins.kafka.follower.Reader."""
        if value is None:
            self._roster.remove((key or b"").decode(errors="replace"))
            return
        try:
            snapshot = decode(key, value)
            refused = self._roster.take(snapshot, live, self._context.settings.validity.total_seconds())
        except Refused as problem:
            refused = problem.reason
            self._context.log.debug("refused a record: %s", problem)
        if refused:
            self._context.metrics.count("Refused", refused, "Records")

    def caught_up(self) -> None:
        """See quotahost.plugins.kafka.follower.Reader."""
        if not self._caught_up:
            self._context.log.info("the snapshots of the cluster are read")
        self._caught_up = True

    # ---- the host thread ----

    def read(self) -> ClusterVolumes:
        """What is known now; the same object as long as it is the same."""
        host = self._context.settings
        known = self._roster.known(
            host.validity.total_seconds(),
            host.startup_grace.total_seconds(),
            host.snapshots_expiry.total_seconds(),
        )
        others = [each for each in known if each.broker != self._own]
        own = self._disks.known()
        told = ClusterVolumes(
            own.volumes + tuple(v for each in others if each.snapshot for v in each.snapshot.volumes),
            own.unknown + tuple(text for each in others for text in _unknown(each)),
            self._waits_for() or own.waiting,
        )
        self._show(others)
        if told != self._told:
            self._told = told
        return self._told or told

    def close(self) -> None:
        """End the threads and the client."""
        self._follower.close()
        self._registered_brokers.close()

    def _waits_for(self) -> str:
        if not self._caught_up:
            return f"topic {self._context.settings.snapshots_topic} is not read yet"
        if not self._registered_brokers.answered:
            return "the cluster has not told its brokers yet"
        return ""

    def _show(self, others: list[Known]) -> None:
        """Ages and counts for the metrics, once a second."""
        now = self._clock()
        if now < self._show_at:
            return
        self._show_at = now + 1
        metrics = self._context.metrics
        ages = {each.broker: each.age for each in others if each.age is not None}
        for gone in self._shown - ages.keys():
            metrics.forget("Snapshot", gone)
        for name, age in ages.items():
            metrics.gauge("Snapshot", name, "Age", age)
        self._shown = set(ages)
        metrics.gauge(
            "Brokers", "", "Stale", sum(1 for each in others if each.problem and each.age is not None)
        )
        metrics.gauge(
            "Brokers", "", "Missing", sum(1 for each in others if each.problem and each.age is None)
        )


def _unknown(each: Known) -> list[str]:
    """Why a broker's volumes are not all known: it is silent, or log directories of it are offline."""
    if each.problem and not each.patient:
        return [each.problem]
    return [
        f"broker {each.broker}, log dir {printable(name)}"
        for name in (each.snapshot.offline if each.snapshot else ())
    ]
