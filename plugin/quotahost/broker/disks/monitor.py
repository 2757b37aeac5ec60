"""``DiskMonitor`` looks at a broker's disks every ``volumes.period`` on its own thread, because a look may hang.

1. A look first reads a block from each log directory, at most every 5 s: a directory that can't be read is offline.
2. It takes the volumes of the other directories (``file_stores``), and gives them their limits.
3. It lists the topics of volumes whose factor may be below 1 (``topics``), and the bytes of budgets (``budgets``).
4. Plugins read the latest look without waiting. If it is older than ``validity``, the disks are unknown.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, Self

from quotahost.api import Broker, DiskState, Metrics
from quotahost.api.broker import Shown
from quotahost.base.background import Clock, LoggedOnce, Periodic, start_daemon
from quotahost.base.text import printable
from quotahost.broker.disks.budgets import BudgetSizes
from quotahost.broker.disks.file_stores import cluster_id, formatted, log_dirs, read_disks, unreadable
from quotahost.broker.disks.topics import LIST_EVERY, topics
from quotahost.model import ClusterVolumes
from quotahost.model.volumes import byte_limits
from quotahost.settings.broker import Settings
from quotahost.settings.storage import match

log = logging.getLogger("quotahost.disks")

_READ_EVERY: Final = 5.0  # seconds between real reads from the disks; they must not add load to a busy disk
_LOOK_WITHIN: Final = 1.0  # seconds that the first plugin and a live change wait, so that the next read finds the look


class DiskMonitor:
    """Implements ``quotahost.api.Disks``; looks every ``volumes.period`` after the first plugin asks for it."""

    def __init__(
        self, broker: Broker, metrics: Metrics, node_id: int, settings: Callable[[], Settings],
        clock: Clock = time.monotonic, after_look: Callable[[], None] = lambda: None,
        shown: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Start no thread: :meth:`started` does that.

        ``settings`` returns the settings in force, which a live change replaces. The monitor's thread calls
        ``after_look`` after each look and when it ends; ``after_look`` may block on a disk. ``shown`` has the metrics
        that the previous host left.
        """
        self._after_look = after_look
        self._broker, self._metrics, self._node = broker, metrics, str(node_id)
        self._shown = Shown(metrics, "Volume", shown)
        self._settings, self._clock = settings, clock
        self._directories = log_dirs(broker.properties())
        self._thread: Periodic | None = None
        self._looked = threading.Event()
        # One tuple has time and state and is replaced as a whole, so readers take no lock and wait for no disk.
        self._latest: tuple[float, DiskState | None] = (clock(), None)
        self._read_at, self._unreadable = -math.inf, dict[str, str]()  # log directories whose disk fails, and why
        #: Log directories in which a look found ``meta.properties``; Kafka writes it before it creates the callback.
        self._formatted = set(self._directories if shown else ())
        #: For each volume whose factor may be below 1: the time when its topics were listed, and the topics.
        self._listed: dict[str, tuple[float, frozenset[str] | None]] = {}
        self.budgets = BudgetSizes(broker.replicas, clock)
        self._failure = LoggedOnce(log, logging.ERROR)
        self._inodes = LoggedOnce(log)
        self._logged = set[str]()
        self.cluster_id = ""

    def started(self) -> Self:
        """Start the thread if it doesn't run, and return self. The first call waits at most 1 s for the first look."""
        if self._thread is None:
            # Until the first look, the age counts from now and not from the host's start.
            self._latest = (self._clock(), None)
            start = partial(start_daemon, at_end=self._after_look)
            self._thread = Periodic("disks", self._try, lambda: self._settings().volumes_period.total_seconds(), start)
            self._looked.wait(_LOOK_WITHIN)
        return self

    def wake(self) -> None:
        """Look now: a live change may have made the period shorter, or limits so low that the topics count."""
        if self._thread:
            self._looked.clear()
            self._thread.wake()
            self._looked.wait(_LOOK_WITHIN)

    def latest(self) -> tuple[float, DiskState | None]:
        looked_at, disks = self._latest
        return self._clock() - looked_at, disks

    def known(self) -> ClusterVolumes:
        age, disks = self.latest()
        if disks is None:
            return ClusterVolumes((), waiting=f"broker {self._node}: its disks have not answered yet")
        unknown = tuple(f"broker {self._node}, log dir {lost}" for lost in disks.offline)
        validity = self._settings().validity.total_seconds()
        if age > validity:
            silent = f"its disks have not answered for more than validity ({validity:g} s)"
            unknown += (f"broker {self._node}: {silent}",)
        return ClusterVolumes(disks.volumes, unknown)

    def look(self) -> None:
        disks, looked_at = self._read(), self._clock()
        # The topics are listed after ``looked_at`` is set, so that a slow listing doesn't make the sizes look younger.
        disks = self._with_topics(self._with_limits(disks))
        self.cluster_id = self.cluster_id or cluster_id(self._directories)
        self.budgets.look([place for place, _ in disks.places])
        self._latest = (looked_at, disks)
        self._shown.show({v.name: {"Capacity": v.capacity, "Consumed": v.consumed} for v in disks.volumes})
        self._metrics.gauge("LogDirs", "", "Offline", len(disks.offline))

    def _read(self) -> DiskState:
        offline = self._broker.offline_log_dirs()
        served = [name for name in self._directories if name not in offline]
        # The real read comes before the look at the sizes, so that a slow disk doesn't make the sizes older.
        if self._clock() - self._read_at >= _READ_EVERY:
            self._unreadable = unreadable(served)
            self._read_at = self._clock()
        there = formatted(served)
        gone = dict.fromkeys(self._formatted - there, "its meta.properties is gone; is its volume mounted?")
        self._formatted |= there
        failed = {name: why for name, why in (gone | self._unreadable).items() if name in served}
        disks = read_disks(self._node, [name for name in self._directories if name not in failed], offline)
        if full := [volume.name for volume in disks.volumes if volume.free == 0]:
            text = "volume %s has no space or no inodes (files) left: it counts as full, however many bytes are free"
            self._inodes.report(text, printable(full[0]))
        else:
            self._inodes.healed()
        return replace(disks, offline=disks.offline + tuple(f"{name}: {why}" for name, why in failed.items()))

    def close(self) -> None:
        if self._thread:
            self._thread.close()

    def _try(self) -> None:
        # Without this thread, the disks would stay unknown for good.
        with self._failure.caught("this broker's disks can't be read"):
            self.look()
            self._after_look()
            self._looked.set()

    def _with_limits(self, disks: DiskState) -> DiskState:
        overrides = self._settings().static.storage.overrides
        if not overrides:
            return disks
        # An override may name an offline directory, or a volume that an offline directory hides.
        places = dict.fromkeys(self._directories, "") | dict(disks.places)
        matched = match(overrides, [volume.name for volume in disks.volumes], places)
        strangers = [f"{printable(n)} is neither a volume nor a log directory here" for n in matched.unmatched]
        for problem in [*matched.conflicts, *([] if disks.offline else strangers)]:
            if problem not in self._logged:
                log.warning("static.storage.overrides: %s", problem)
            self._logged.add(problem)
        limits = ((volume, *matched.limits.get(volume.name, (None, None))) for volume in disks.volumes)
        return replace(disks, volumes=tuple(replace(v, soft=soft, hard=hard) for v, soft, hard in limits))

    def _with_topics(self, disks: DiskState) -> DiskState:
        """Add the topics of each volume whose factor may be below 1; nobody needs the topics of other volumes."""
        storage, now = self._settings().static.storage, self._clock()
        before, self._listed = self._listed, {}
        for volume in disks.volumes:
            in_force = byte_limits(volume, *storage.limits_of(volume))
            if in_force and in_force.may_lower(volume.consumed):
                listed = before.get(volume.name)
                if listed is None or now - listed[0] >= LIST_EVERY:
                    listed = now, topics(place for place, on in disks.places if on == volume.name)
                self._listed[volume.name] = listed
        found = {name: topics for name, (_, topics) in self._listed.items()}
        return replace(disks, volumes=tuple(replace(v, topics=found.get(v.name)) for v in disks.volumes))


class NoDisks:
    """Implements ``quotahost.api.Disks`` for a node that is no broker: it has no volumes and starts no thread.

    A controller keeps only the metadata log. The disk of this log is no volume of the cluster: no limit of
    ``static.storage.*`` applies to it, and no task publishes it. Clients don't write to it, so it counts for no budget.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.cluster_id = cluster_id(log_dirs(properties))  # read once: the storage is formatted before the node starts
        self.budgets = BudgetSizes(lambda _replicas: [])  # no thread of this node looks for budgets

    def latest(self) -> tuple[float, DiskState | None]:
        return 0.0, DiskState(())

    def known(self) -> ClusterVolumes:
        return ClusterVolumes(())
