"""A thread that looks at this broker's file stores, so that a disk that hangs holds nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from quotahost.api import Context
from quotahost.disks import Disks, log_dirs, read_disks

_CLOSE_WITHIN: Final = 0.5  # seconds


class DiskWatch:
    """The newest look at the disks, renewed every ``volumes.period``, and its age."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        """Looks once at once, on the calling thread, and then on its own; ``clock`` in seconds, monotonic."""
        self._context, self._clock = context, clock
        self._broker = str(context.node_id)
        self._directories = log_dirs(context.broker.properties())
        self._stop = threading.Event()
        self._newest: tuple[float, Disks] = (0.0, Disks(()))
        self._look()
        self._thread = context.start_thread(f"{context.name}-disks", self._run)

    def read(self) -> tuple[float, Disks]:
        """Age in seconds of the newest look, and the look; never waits."""
        looked_at, disks = self._newest
        return self._clock() - looked_at, disks

    def close(self) -> None:
        """End the thread; one that hangs in a disk is left behind."""
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.wait(self._context.host.volumes_period.total_seconds()):
            self._look()

    def _look(self) -> None:
        disks = read_disks(self._broker, self._directories, self._context.broker.offline_log_dirs())
        before = self._newest[1]
        # The same object while nothing changed: who compares by identity has nothing to do.
        self._newest = (self._clock(), before if disks == before else disks)
        if disks == before:
            return
        for volume in disks.volumes:
            self._context.broker.gauge("Volume", volume.name, "Capacity", volume.capacity)
            self._context.broker.gauge("Volume", volume.name, "Consumed", volume.consumed)
        self._context.broker.gauge("LogDirs", "", "Offline", len(disks.offline))
