"""``ExpectedBrokers`` decides for ``snapshots`` and ``cluster-volumes`` which brokers count and which are unknown.

Only a broker that runs can fill a disk. If a broker runs and is silent, the broker is unknown. If a broker is fenced
(Kafka's term for a registered broker that is not in service), its last known volumes count: a disk that was full when
its broker died stays full until the broker is back or unregistered. A broker that isn't registered never counts. With
``fenced.brokers=unknown``, a fenced broker is unknown like a silent broker (the strict form).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quotahost.api import Metrics
from quotahost.base.background import Clock
from quotahost.base.text import printable
from quotahost.model import Volume
from quotahost.settings.broker import Settings

UNLISTED: Final = "the cluster has not listed its brokers yet"
NO_CLUSTER_ID: Final = "the cluster's id is not read from the log directories yet"


class Heard(NamedTuple):
    """The latest information of a source about one broker."""

    broker: str
    is_fresh: bool | None  # whether its latest snapshot is within ``validity``; None if there is no snapshot
    volumes: tuple[Volume, ...] = ()  # the volumes in that snapshot
    offline: tuple[str, ...] = ()  # the log directories that the snapshot names as offline
    since: float = -math.inf  # when a snapshot was first missed, in monotonic seconds


@dataclass(slots=True)
class View:
    """The cluster without this broker's own disks; each view is a new object."""

    volumes: list[Volume] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # one sentence for each unknown broker or log directory
    waiting: str = ""  # what the source still waits for since this broker started, "" for nothing
    complete: bool = True  # False while the source still waits for a missing broker, which isn't unknown yet
    stale: int = 0  # the number of brokers in service whose latest snapshot is older than validity
    missing: int = 0  # the number of brokers in service without a snapshot
    last_known: int = 0  # the number of brokers whose last known volumes count

    def show(self, metrics: Metrics) -> None:
        for attribute, number in (("Stale", self.stale), ("Missing", self.missing), ("LastKnown", self.last_known)):
            metrics.gauge("Brokers", "", attribute, number)


class ExpectedBrokers:
    """Keeps the registered brokers, and the time since which each of them has been in service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The registered brokers by id, and whether each is fenced; None until the cluster has listed them.
        self.brokers: Mapping[str, bool] | None = None
        self._listed_at = math.inf
        self.in_service_since: dict[str, float] = {}  # by broker; fenced brokers are not listed
        self._fenced_at: dict[str, float] = {}  # by broker, the last time when it was listed as fenced

    def register(self, brokers: Mapping[str, bool]) -> set[str]:
        """Take the registered brokers, and whether each is fenced; return the newly registered brokers."""
        now, before = self._clock(), self.brokers
        self._listed_at = min(self._listed_at, now)
        # startup.grace of a broker starts when the broker joins or comes back into service.
        self.in_service_since = {b: self.in_service_since.get(b, now) for b in brokers if not brokers[b]}
        self._fenced_at = {b: now if brokers[b] else self._fenced_at.get(b, -math.inf) for b in brokers}
        # Set last and as a whole, because other threads read it without a lock.
        self.brokers = dict(brokers)
        return brokers.keys() - (before or {}).keys()

    def serves(self, broker: str, told_at: float) -> bool:
        """Whether a broker has been in service without a break since ``told_at``; else it may lead other partitions."""
        return broker in self.in_service_since and told_at > self._fenced_at[broker]

    def view(self, heard: Iterable[Heard], settings: Settings, stale: str) -> View:
        """Make the view; ``stale`` is the sentence about a broker whose latest snapshot is stale."""
        view, now, grace = View(), self._clock(), settings.startup_grace.total_seconds()
        for broker, is_fresh, last, offline, since in heard:
            fenced = (self.brokers or {}).get(broker)
            # A fenced broker without any snapshot can't take writes until it is in service.
            if fenced and is_fresh is None:
                continue
            name = f"broker {printable(broker)}"
            began = self.in_service_since.get(broker, now)
            if is_fresh:
                view.volumes += last
                # Only a fresh snapshot counts here: a broker may find other directories when it starts again.
                view.unknown += (f"{name}, log dir {printable(directory)}" for directory in offline)
            elif is_fresh is None:
                view.missing += 1
                # ``waiting`` stays empty, because quotahost may not be installed on this broker yet.
                if now - max(since, began) <= grace:
                    view.complete = False
                else:
                    view.unknown.append(f"{name}: no snapshot")
            elif (fenced and settings.fenced_brokers == "unknown") or (not fenced and now - began > grace):
                view.stale += 1
                view.unknown.append(f"{name}: {stale}")
            # If this reader saw the broker come back, its last volumes are exact: it took no writes meanwhile. If this
            # reader has just started, it doesn't know how long the broker has been running.
            elif fenced or began > self._listed_at:
                view.last_known += 1
                view.volumes += last
            else:
                view.stale += 1
                view.volumes += last
                view.waiting = view.waiting or f"{name}: {stale}"
        return view
