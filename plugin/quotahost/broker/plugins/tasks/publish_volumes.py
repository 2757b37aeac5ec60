"""The task ``publish-volumes``: this broker's volumes as a snapshot, every ``snapshots.period`` and when one changes.

This is the data source of proposal 035. The factor source ``snapshots`` of every broker reads the topic, or the
pipeline does for ``cluster-volumes``. Most looks at the disks differ so little that nobody would act on them;
:class:`ChangePublisher` writes those that matter.
"""

import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, Generic, TypeVar

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce
from quotahost.kafka.publisher import Publisher
from quotahost.model import Volume
from quotahost.model.volumes import byte_limits
from quotahost.records.snapshot import Snapshot, encode

_CHANGE: Final = 1000  # a change of consumption by this part of the capacity is published at once
_LONGEST: Final = timedelta(milliseconds=250)  # between two runs, so that a period shortened live counts at once

T = TypeVar("T")


class PublishVolumes:
    """Publishes at the start, at least every ``snapshots.period``, and at once when something has changed.

    A change is a volume that came, went, moved by a thousandth of its capacity or crossed one of its limits, new
    limits, other topics on a volume above its soft limit, the cluster's id, or a log directory that went offline
    (proposal 035, "The data source"). If the disks stop answering for half of ``validity``, publishing stops, so that
    the other brokers treat this one as stale. At a start the first record waits for the budgets' bytes, but no longer
    than others can wait for it.
    """

    def __init__(self, context: Context, clock: Clock = time.monotonic) -> None:
        self._context, self._clock, self._started = context, clock, clock()
        self.period: timedelta = _LONGEST
        self._disks = context.disks
        topic = context.settings.snapshots_topic
        self._publisher: ChangePublisher[Snapshot] = ChangePublisher(context, topic, self._has_changed, clock)
        self._silence = LoggedOnce(context.log)

    def run(self) -> None:
        settings = self._context.settings
        self.period = min(settings.volumes_period, _LONGEST)
        self._publisher.offer(self._snapshot(), encode, settings.snapshots_period.total_seconds())

    def _snapshot(self) -> Snapshot | None:
        """The newest look at the disks; None where it is too old to be published."""
        settings = self._context.settings
        age, disks = self._disks.latest()
        # A slow disk is published for half of validity: a machine that stalls for a moment must not silence its broker.
        longest = max(settings.validity / 2, settings.snapshots_period + settings.volumes_period)
        if age > longest.total_seconds():
            self._silence.report("the disks don't answer; nothing is published until they do")
            return None
        self._silence.healed()
        # The disks have not answered yet, which is no fault so soon after the start.
        if disks is None:
            return None
        parts = self._disks.budgets.parts if settings.budgets == "on" else {}
        # Others would take a record without budgets for the news that nothing of them is left here, and let writers go
        # on though their budget is used up. Till then the record from before the restart counts.
        patience = min(settings.validity, settings.startup_grace) / 2
        if parts is None and self._clock() - self._started < patience.total_seconds():
            return None
        return Snapshot(
            str(self._context.node_id), disks.looked_at, disks.volumes, settings.static.storage.soft_limit,
            settings.static.storage.hard_limit, disks.offline, self._disks.cluster_id, round(age * 1000),
            tuple((name, part.used) for name, part in (parts or {}).items()) or None,
        )  # fmt: skip

    def _has_changed(self, before: Snapshot, now: Snapshot) -> bool:
        """As :func:`has_changed`, or a budget came, went, or moved by a thousandth of its bytes.

        What has changed since one look goes with the next: the pipeline can't tell which of two of one look is newer.
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
    # Other brokers make their factor of these, and of the topics for whom it is; so a limit that an administrator has
    # set, or a new topic, must not wait for the period.
    if (before.capacity, before.soft, before.hard, before.topics) != (now.capacity, now.soft, now.hard, now.topics):
        return True
    change = abs(now.consumed - before.consumed)
    # At a limit the state changes, however few bytes it takes.
    limits = byte_limits(now, now.soft, now.hard)
    breaches = (limits.breaches_soft, limits.breaches_hard) if limits else ()
    crossed = any(each(before.consumed) != each(now.consumed) for each in breaches)
    # Without `change > 0` an empty file store, whose capacity is 0, would have changed at each look.
    return crossed or (change > 0 and change * _CHANGE >= now.capacity)


class ChangePublisher(Publisher, Generic[T]):
    """Writes what a task sees, with this broker's id as the key, when it has changed or its time has come."""

    def __init__(
        self, context: Context, topic: str, has_changed: Callable[[T, T], bool], clock: Clock,
        more: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """As a ``Publisher``; ``has_changed``: whether what is seen differs enough from what was published before."""
        super().__init__(context, topic, self._publish_again, clock, more)
        self._key, self._has_changed = str(context.node_id).encode(), has_changed
        self._sent_at = -math.inf
        self._published: T | None = None

    def offer(self, seen: T | None, make: Callable[[T], bytes], period: float) -> None:
        """Publish what was seen if it has changed or its time has come, unless a record is still on its way.

        ``seen`` is None if there is nothing to publish, also not later. ``make`` encodes what is published. ``period``:
        seconds until it is published again without any change.
        """
        # busy() comes first: it also reports a lost record, even where there is nothing to send now.
        if self.busy() or seen is None:
            return
        changed = self._published is not None and self._has_changed(self._published, seen)
        if changed or self._clock() - self._sent_at >= period:
            # Before it is sent: send() may find at once that it is lost, which must have the last word.
            self._published, self._sent_at = seen, self._clock()
            self.send(self._key, lambda: make(seen))

    def _publish_again(self) -> None:
        """The last record was not delivered, so nobody knows what has changed: publish again soon, whatever is seen."""
        self._published, self._sent_at = None, -math.inf
