"""The factor source ``local``: this broker's own volumes, without any topic."""

from __future__ import annotations

import time
from collections.abc import Callable

from quotahost.api import Context
from quotahost.model import ClusterVolumes
from quotahost.plugins.disks.monitor import DiskWatch


class Local:
    """Reports this broker's file stores; other brokers' disks are theirs to guard.

    A log directory that is offline or can't be read is unknown, and so are all if the disks don't answer for
    ``validity``.
    """

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to look at the disks; ``clock`` in seconds, monotonic."""
        self._watch = DiskWatch(context, clock, tells=context.name != context.settings.factor_source_second)
        self._told: ClusterVolumes | None = None

    def read(self) -> ClusterVolumes:
        """The newest look at the disks; the same object as long as it is the same."""
        told = self._watch.known()
        if told != self._told:
            self._told = told
        return self._told or told

    def close(self) -> None:
        """End the thread."""
        self._watch.close()
