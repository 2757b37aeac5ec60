"""Which brokers count for ``snapshots`` and ``cluster-volumes``: silent is unknown, a fenced one's last volumes hold.

Only a broker that runs can fill a disk. So a broker is unknown if it runs and is silent, and not if it is fenced
(Kafka's term for a registered broker that is not in service): then its last known volumes count, and a disk that was
full when its broker died stays full until the broker is back or unregistered. A broker that isn't registered never
counts. With ``fenced.brokers=unknown`` a fenced broker is unknown like a silent one (the strict form).
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
    """What a source has heard of one broker."""

    broker: str
    is_fresh: bool | None  # whether its newest snapshot is within ``validity``; None: there is none
    volumes: tuple[Volume, ...] = ()  # of that snapshot
    offline: tuple[str, ...] = ()  # the log directories that it names as offline
    since: float = -math.inf  # when a snapshot was first missed, in monotonic seconds


@dataclass(slots=True)
class View:
    """The cluster without this broker's own disks; whoever is asked for one makes it anew."""

    volumes: list[Volume] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # a sentence for each thing that is unknown
    waiting: str = ""  # what is waited for since this broker started, "" for nothing
    complete: bool = True  # False while a broker is missing that is still waited for, and so isn't unknown yet
    stale: int = 0  # brokers in service whose newest snapshot is older than validity
    missing: int = 0  # brokers in service without a snapshot
    last_known: int = 0  # brokers whose last known volumes count

    def show(self, metrics: Metrics) -> None:
        for attribute, number in (("Stale", self.stale), ("Missing", self.missing), ("LastKnown", self.last_known)):
            metrics.gauge("Brokers", "", attribute, number)


class ExpectedBrokers:
    """Holds which brokers are registered, and since when each of them has been in service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The registered brokers by id, and whether each is fenced; None until the cluster has listed them.
        self.brokers: Mapping[str, bool] | None = None
        self._listed_at = math.inf
        self.in_service_since: dict[str, float] = {}  # by broker that is not fenced
        self._fenced_at: dict[str, float] = {}  # by broker that was, when it was listed so last

    def register(self, brokers: Mapping[str, bool]) -> set[str]:
        """These are the registered brokers now, and whether each is fenced; returns those that weren't before."""
        now, before = self._clock(), self.brokers
        self._listed_at = min(self._listed_at, now)
        # A broker that comes back into service, or joins, gets startup.grace from then on.
        self.in_service_since = {b: self.in_service_since.get(b, now) for b in brokers if not brokers[b]}
        self._fenced_at = {b: now if brokers[b] else self._fenced_at.get(b, -math.inf) for b in brokers}
        # Last, and as a whole: other threads read it without a lock.
        self.brokers = dict(brokers)
        return brokers.keys() - (before or {}).keys()

    def serves(self, broker: str, told_at: float) -> bool:
        """Whether a broker is in service, and has been since it told something; else it may lead nothing of that."""
        return broker in self.in_service_since and told_at > self._fenced_at[broker]

    def view(self, heard: Iterable[Heard], settings: Settings, stale: str) -> View:
        """What follows from what was heard; ``stale`` is what to say of a broker whose newest snapshot is."""
        view, now, grace = View(), self._clock(), settings.startup_grace.total_seconds()
        for broker, is_fresh, last, offline, since in heard:
            fenced = (self.brokers or {}).get(broker)
            # A fenced broker that never had a snapshot can't take writes until it is in service.
            if fenced and is_fresh is None:
                continue
            name = f"broker {printable(broker)}"
            began = self.in_service_since.get(broker, now)
            if is_fresh:
                view.volumes += last
                # Of another one nobody knows which directories it will find when it starts again.
                view.unknown += (f"{name}, log dir {printable(directory)}" for directory in offline)
            elif is_fresh is None:
                view.missing += 1
                # It may have no quotahost yet, so that nothing waits for it.
                if now - max(since, began) <= grace:
                    view.complete = False
                else:
                    view.unknown.append(f"{name}: no snapshot")
            elif (fenced and settings.fenced_brokers == "unknown") or (not fenced and now - began > grace):
                view.stale += 1
                view.unknown.append(f"{name}: {stale}")
            # Of a broker that was seen to come back the last volumes are exact: it took no writes meanwhile. When this
            # reader itself has just started, nobody knows for how long the broker has been running.
            elif fenced or began > self._listed_at:
                view.last_known += 1
                view.volumes += last
            else:
                view.stale += 1
                view.volumes += last
                view.waiting = view.waiting or f"{name}: {stale}"
        return view
