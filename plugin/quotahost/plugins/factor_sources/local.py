"""The factor source ``local``: this broker's own volumes, without any topic."""

from __future__ import annotations

from quotahost.api import Context
from quotahost.model import ClusterVolumes


class Local:
    """Reports this broker's file stores; other brokers' disks are theirs to guard.

    A log directory that is offline or can't be read is unknown, and so are all if the disks don't answer for
    ``validity``.
    """

    def __init__(self, context: Context) -> None:
        """Have the host look at the disks."""
        self._disks = context.disks

    def read(self) -> ClusterVolumes:
        """The newest look at the disks; the same object as long as it is the same."""
        return self._disks.known()
