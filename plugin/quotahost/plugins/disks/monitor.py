"""A thread that looks at this broker's file stores, so that a disk that hangs holds nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quotahost.api import Context
from quotahost.model import ClusterVolumes, Volume
from quotahost.plugins.disks.file_stores import Disks, cluster_id, log_dirs, read_disks
from quotahost.settings.volume_overrides import Matched, match
from quotahost.text import printable

_FIRST_LOOK_WITHIN: Final = 1.0  # seconds that the constructor waits, so that the first read knows the disks
_CLOSE_WITHIN: Final = 0.5  # seconds


class DiskWatch:
    """The newest look at the disks, renewed every ``volumes.period``, and its age.

    Volumes have the limits of ``static.storage.overrides`` that hold for them.

    Attributes:
        cluster: the id of the cluster, as the log directories tell it; "" until one of them has.
    """

    def __init__(
        self, context: Context[object], clock: Callable[[], float] = time.monotonic, tells: bool = True
    ) -> None:
        """Begin to look, and wait a second at most for the first.

        Args:
            context: the plugin's.
            clock: in seconds, monotonic.
            tells: whether to log overrides that fit no volume; another watch of this broker may do so.
        """
        self._tells, self._told = tells, set[str]()
        self._context, self._clock = context, clock
        self._broker = str(context.node_id)
        self._directories = log_dirs(context.broker.properties())
        self._stop, self._looked = threading.Event(), threading.Event()
        self._newest: tuple[float, Disks | None] = (clock(), None)
        self._told_failure = False
        self.cluster = ""
        self._thread = context.start_thread(f"{context.name}-disks", self._run)
        self._looked.wait(_FIRST_LOOK_WITHIN)

    def read(self) -> tuple[float, Disks | None]:
        """Age in seconds of the newest look, and the look; before the first, the time since the start and None."""
        looked_at, disks = self._newest
        return self._clock() - looked_at, disks

    def known(self) -> ClusterVolumes:
        """This broker's part of the cluster volumes; its last volumes once the disks answer no more."""
        age, disks = self.read()
        if disks is None:
            return ClusterVolumes((), waiting=f"broker {self._broker}: its disks have not answered yet")
        unknown = tuple(f"broker {self._broker}, log dir {each}" for each in disks.offline)
        validity = self._context.settings.validity
        if age > validity.total_seconds():
            # No age in it: who compares sentences would see a new one every second.
            silent = f"its disks have not answered for more than validity ({validity.total_seconds():g} s)"
            unknown += (f"broker {self._broker}: {silent}",)
        return ClusterVolumes(disks.volumes, unknown)

    def close(self) -> None:
        """End the thread; one that hangs in a disk is left behind."""
        self._stop.set()
        self._thread.join(_CLOSE_WITHIN)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._try()
            self._stop.wait(self._context.settings.volumes_period.total_seconds())

    def _try(self) -> None:
        """A failure that nobody thought of must not end the thread: the disks would stay unknown for good."""
        try:
            self._look()
        except Exception:
            if not self._told_failure:
                self._context.log.exception("this broker's disks can't be looked at")
            self._told_failure = True
            return
        self._told_failure = False
        self._looked.set()

    def _look(self) -> None:
        disks = self._with_limits(
            read_disks(self._broker, self._directories, self._context.broker.offline_log_dirs())
        )
        self.cluster = self.cluster or cluster_id(self._directories)
        before = self._newest[1]
        # The same object while nothing changed: who compares by identity has nothing to do.
        self._newest = (self._clock(), before if disks == before else disks)
        if disks != before:
            self._show(disks, before.volumes if before else ())

    def _with_limits(self, disks: Disks) -> Disks:
        overrides = self._context.settings.static.storage.overrides
        if not overrides:
            return disks
        # An offline directory may be what an override names, or hide the volume that has this name.
        known = dict.fromkeys(self._directories, "") | dict(disks.places)
        matched = match(overrides, [volume.name for volume in disks.volumes], known)
        self._tell(matched, bool(disks.offline))
        none = (None, None)
        limits = ((volume, *matched.limits.get(volume.name, none)) for volume in disks.volumes)
        return replace(disks, volumes=tuple(replace(v, soft=soft, hard=hard) for v, soft, hard in limits))

    def _tell(self, matched: Matched, offline: bool) -> None:
        problems = [f"{printable(name)} is no volume or log directory" for name in matched.unmatched]
        for problem in [*matched.conflicts, *([] if offline else problems)]:
            if self._tells and problem not in self._told:
                self._context.log.warning("static.storage.overrides: %s", problem)
            self._told.add(problem)

    def _show(self, disks: Disks, before: tuple[Volume, ...]) -> None:
        metrics = self._context.metrics
        for gone in {volume.name for volume in before} - {volume.name for volume in disks.volumes}:
            metrics.forget("Volume", gone)
        for volume in disks.volumes:
            metrics.gauge("Volume", volume.name, "Capacity", volume.capacity)
            metrics.gauge("Volume", volume.name, "Consumed", volume.consumed)
        metrics.gauge("LogDirs", "", "Offline", len(disks.offline))
