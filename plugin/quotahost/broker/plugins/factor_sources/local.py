"""The factor source ``local``: this broker's own volumes, without any topic.

Each broker then throttles by its own disks only and no broker waits for another. The host's monitor looks at the
disks (``context.disks``); the policy turns each volume into a factor.
"""

from __future__ import annotations

from quotahost.api import Context
from quotahost.model import ClusterVolumes


class Local:
    """Reports this broker's file stores.

    A log directory that is offline or can't be read is unknown. So are all disks once they have not answered for
    ``validity``.
    """

    def __init__(self, context: Context) -> None:
        """Have the host look at the disks."""
        self._disks = context.disks

    def read(self) -> ClusterVolumes:
        """The newest look at the disks; the same object as long as nothing has changed."""
        return self._disks.known()
