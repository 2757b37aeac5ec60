"""The task ``publish-volumes`` publishes this broker's volumes as a snapshot, periodically and after a change.

This task is the data source of proposal 035. The factor source ``snapshots`` of every broker reads the snapshots; for
``cluster-volumes`` the pipeline reads them.
"""

import time
from datetime import timedelta
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce
from quotahost.kafka.publisher import Publisher
from quotahost.model import Volume
from quotahost.model.volumes import byte_limits
from quotahost.records.snapshot import Snapshot, encode
from quotahost.records.topics import SNAPSHOTS

_CHANGE: Final = 1000  # a change of the consumed bytes by 1/1000 of the capacity is published immediately
_LONGEST: Final = timedelta(milliseconds=250)  # between two runs, so that a shorter period applies immediately


class PublishVolumes:
    """Publishes at the start, at least every ``snapshots.period``, and immediately after a change.

    These are changes: a volume comes, goes, fills or empties by a thousandth of its capacity, or crosses a limit; the
    limits, the cluster's id, or the topics on a volume above its soft limit change; a log directory goes offline
    (proposal 035, "The data source"). If the disks don't answer for half of ``validity``, publishing stops, so that
    the other brokers treat this broker as stale. After a start the first record waits for the budgets' bytes, but not
    longer than the other brokers can wait for the record.
    """

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock, self._started = context, clock, clock()
        self.period: timedelta = _LONGEST
        self._disks = context.disks
        topic = context.settings.named(SNAPSHOTS)
        self._publisher = Publisher[Snapshot](context, topic, self._has_changed, clock)
        self._silence = LoggedOnce(context.log)

    def run(self) -> None:
        settings = self._context.settings
        self.period = min(settings.volumes_period, _LONGEST)
        self._publisher.offer(self._snapshot(), encode, settings.snapshots_period.total_seconds())

    def _snapshot(self) -> Snapshot | None:
        """The latest look at the disks as a snapshot, or None if there is nothing to publish now."""
        settings = self._context.settings
        age, disks = self._disks.latest()
        # An old look is published for half of validity, so that a short stall of the machine doesn't stop publishing.
        longest = max(settings.validity / 2, settings.snapshots_period + settings.volumes_period)
        if age > longest.total_seconds():
            self._silence.report("the disks don't answer, or this broker stood still; no snapshot until they answer")
            return None
        self._silence.healed("the disks answer again")
        # The disks have not answered yet. So soon after the start, this is no fault.
        if disks is None:
            return None
        parts = self._disks.budgets.parts if settings.budgets == "on" else {}
        # For other brokers, a record without budgets means that no budget has bytes here, so writers could continue
        # although their budget is used up. Until the budgets are known, the record from before the restart counts.
        patience = min(settings.validity, settings.startup_grace) / 2
        if parts is None and self._clock() - self._started < patience.total_seconds():
            return None
        return Snapshot(
            str(self._context.node_id), disks.looked_at, disks.volumes, settings.static.storage.soft_limit,
            settings.static.storage.hard_limit, disks.offline, self._disks.cluster_id, round(age * 1000),
            tuple((name, part.used) for name, part in (parts or {}).items()) or None,
        )  # fmt: skip

    def _has_changed(self, before: Snapshot, now: Snapshot) -> bool:
        """Whether :func:`has_changed`, or a budget came, went, or changed by a thousandth of its bytes.

        Two snapshots of one look are no change, because the pipeline couldn't tell which one is newer.
        """
        if before.captured_at == now.captured_at:
            return False
        if has_changed(before, now):
            return True
        wanted, old, new = self._disks.budgets.wanted or {}, dict(before.budgets or ()), dict(now.budgets or ())
        return old.keys() != new.keys() or any(
            used != old[name] and abs(used - old[name]) * _CHANGE >= wanted[name].bytes
            for name, used in new.items()
            if name in wanted
        )


def has_changed(before: Snapshot, now: Snapshot) -> bool:
    old = {volume.name: volume for volume in before.volumes}
    return (
        (before.offline, before.cluster) != (now.offline, now.cluster)
        or old.keys() != {volume.name for volume in now.volumes}
        or any(_moved(old[volume.name], volume) for volume in now.volumes)
    )


def _moved(before: Volume, now: Volume) -> bool:
    # Other brokers compute their factor from these values, and its scope from the topics. So a new limit or a new topic
    # must not wait for the period.
    if (before.capacity, before.soft, before.hard, before.topics) != (now.capacity, now.soft, now.hard, now.topics):
        return True
    change = abs(now.consumed - before.consumed)
    # When the volume crosses a limit, the state changes, however small the change in bytes is.
    limits = byte_limits(now, now.soft, now.hard)
    breaches = (limits.breaches_soft, limits.breaches_hard) if limits else ()
    crossed = any(each(before.consumed) != each(now.consumed) for each in breaches)
    # `change > 0` is for a file store whose capacity is 0, which would otherwise have changed at each look.
    return crossed or (change > 0 and change * _CHANGE >= now.capacity)
