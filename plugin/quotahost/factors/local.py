"""The factor source ``local``: this broker's own volumes, without any topic."""

from __future__ import annotations

from quotahost.api import Context
from quotahost.diskwatch import DiskWatch
from quotahost.model import ClusterVolumes


class Local:
    """Reports this broker's file stores; other brokers' disks are theirs to guard.

    A log directory that is offline or can't be read is unknown, and so are all if the disks don't answer for
    ``validity``.
    """

    def __init__(self, context: Context) -> None:
        """Begin to look at the disks."""
        self._context = context
        self._watch = DiskWatch(context)
        self._told: ClusterVolumes | None = None

    def read(self) -> ClusterVolumes:
        """The newest look at the disks."""
        age, disks = self._watch.read()
        broker = self._context.node_id
        unknown = tuple(f"broker {broker}, log dir {each}" for each in disks.offline)
        if age > self._context.host.validity.total_seconds():
            unknown += (f"broker {broker}: its disks have not answered for {age:.0f} s",)
        told = ClusterVolumes(disks.volumes, unknown)
        if told != self._told:
            self._told = told
        return self._told or told

    def close(self) -> None:
        """End the thread."""
        self._watch.close()
