"""The disks of a node that is no broker: none that clients fill.

A controller keeps the metadata's log alone. It is no volume of the cluster: no limit of ``static.storage.*`` is about
it, and nobody publishes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quotahost.api import DiskState
from quotahost.broker.disks.file_stores import cluster_id, log_dirs
from quotahost.model import ClusterVolumes

_NONE: Final = ClusterVolumes(())


class NoDisks:
    """``quotahost.api.Disks`` without a volume and without a thread.

    Attributes:
        cluster_id: see Disks. The storage of a node is formatted before it starts, so it is read once.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        """``properties`` are the node's own, with ``log.dirs``."""
        self.cluster_id = cluster_id(log_dirs(properties))

    def latest(self) -> tuple[float, DiskState | None]:
        """See Disks."""
        return 0.0, DiskState(())

    def known(self) -> ClusterVolumes:
        """See Disks."""
        return _NONE
