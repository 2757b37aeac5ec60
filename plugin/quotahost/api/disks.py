"""What a plugin may read about this broker's own disks.

Statting a disk that hangs blocks the caller for good, so plugins don't: the host has one monitor with a thread of its
own, and every plugin reads what it found last. A plugin gets it as ``context.disks``. From there the volumes go to
the policy (factor source ``local``) or, as a snapshot, to all other brokers (task ``publish-volumes``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from quotahost.model import ClusterVolumes, Volume


@dataclass(frozen=True, slots=True)
class DiskState:
    """What one look at the file stores of this broker found.

    Attributes:
        volumes: the file stores, with the limits of ``static.storage.overrides``, and the topics of those above their
            soft limits.
        offline: the log directories that can't be read, each as ``DIRECTORY: REASON``.
        places: pairs of a log directory that can be read and the name of its volume.
    """

    volumes: tuple[Volume, ...]
    offline: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()


class Disks(Protocol):
    """The newest look at this broker's disks. Any thread may call; no call waits for a disk."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, from the log directories' ``meta.properties``; "" until one was read."""
        ...

    def latest(self) -> tuple[float, DiskState | None]:
        """The newest look and its age in seconds; before the first look, None and the seconds of waiting."""
        ...

    def known(self) -> ClusterVolumes:
        """The newest look as a factor source answers it; the same object as long as nothing has changed.

        Offline log directories are unknown. Once the look is older than ``validity``, the last volumes stay and all
        disks are unknown.
        """
        ...
