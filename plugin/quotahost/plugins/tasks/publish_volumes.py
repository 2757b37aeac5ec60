"""The task ``publish-volumes``: this broker's volumes, as a snapshot, to the compacted topic of all brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from quotahost.api import Context
from quotahost.model import Volume
from quotahost.plugins.kafka.publisher import RETRY, Publisher
from quotahost.records.snapshot import Snapshot, encode

_NEWS: Final = 1000  # a change of consumption by this part of the capacity is published at once


class PublishVolumes:
    """Publishes at the start, at least every ``snapshots.period``, and at once what is news.

    News is a volume that came, went, changed by a thousandth of its capacity or crossed one of its limits, new limits,
    the cluster's id, or a log directory that went offline (proposal 035, "The data source"). Of disks that answer no
    more nothing is published after half of ``validity``, so that the others miss this broker.
    """

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is connected yet. ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self.period: timedelta = context.settings.volumes_period
        self._disks = context.disks
        self._publisher = Publisher(context, context.settings.snapshots_topic, "volumes", self._lost, clock)
        self._due = clock()
        self._published: Snapshot | None = None
        self._told_silence = False

    def run(self) -> None:
        """Look, and publish if it is time or news."""
        self.period = self._context.settings.volumes_period
        busy = self._publisher.busy()
        snapshot = self._look()
        if snapshot is None or busy:
            return
        due = self._clock() >= self._due
        if not due and (self._published is None or not is_news(self._published, snapshot)):
            return
        self._publish(snapshot)

    def close(self) -> None:
        """Give what is under way a last moment."""
        self._publisher.close()

    def _look(self) -> Snapshot | None:
        """The newest look at the disks; None where it is too old to be published as news of now."""
        host = self._context.settings
        age, disks = self._disks.latest()
        silent = age > max(host.validity / 2, host.snapshots_period + host.volumes_period).total_seconds()
        if silent and not self._told_silence:
            self._context.log.warning("the disks don't answer; nothing is published until they do")
        self._told_silence = silent
        if disks is None or silent:
            return None
        return Snapshot(
            str(self._context.node_id),
            datetime.now(UTC),
            disks.volumes,
            host.storage_soft,
            host.storage_hard,
            disks.offline,
            self._disks.cluster_id,
        )

    def _publish(self, snapshot: Snapshot) -> None:
        self._published = snapshot
        self._due = self._clock() + self._context.settings.snapshots_period.total_seconds()
        self._publisher.send(snapshot.broker.encode(), lambda: encode(snapshot))

    def _lost(self) -> None:
        self._due = self._clock() + RETRY
        self._published = None


def is_news(before: Snapshot, now: Snapshot) -> bool:
    """Whether the difference is worth a record at once."""
    old = {volume.name: volume for volume in before.volumes}
    return (
        (before.offline, before.cluster) != (now.offline, now.cluster)
        or old.keys() != {volume.name for volume in now.volumes}
        or any(_moved(old[volume.name], volume) for volume in now.volumes)
    )


def _moved(before: Volume, now: Volume) -> bool:
    if before.capacity != now.capacity or (before.soft, before.hard) != (now.soft, now.hard):
        return True
    change = abs(now.consumed - before.consumed)
    return (change > 0 and change * _NEWS >= now.capacity) or any(
        (before.consumed >= limit.consumed_at(now.capacity))
        != (now.consumed >= limit.consumed_at(now.capacity))
        for limit in (now.soft, now.hard)
        if limit is not None
    )
