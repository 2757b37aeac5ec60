"""Which brokers count as alive, and how far: the one rule of ``snapshots`` and ``cluster-volumes``.

Only a broker that runs can fill a disk. So a broker is unknown if it runs and is silent, and not if it is fenced
(Kafka's term for a registered broker that is not in service): then its last known volumes count, and a disk that was
full when its broker died stays full until the broker is back or unregistered. A broker that isn't registered never
counts. With ``fenced.brokers=unknown`` a fenced broker is unknown like a silent one (the strict form).

Both sources ask :meth:`ExpectedBrokers.liveness` at each read; memory only, no thread, no Kafka.
"""

import math
from collections.abc import Callable, Mapping
from enum import Enum

from quotahost.api import Metrics
from quotahost.settings.broker import Settings


class Freshness(Enum):
    """What is known of a broker's newest snapshot: it is within ``validity``, it is older, or there is none."""

    FRESH = "fresh"
    STALE = "stale"
    NONE = "none"


class Liveness(Enum):
    """What follows for a broker.

    COUNTS: its newest snapshot counts, whatever its age, and nothing of it is unknown. AWAITED: the same, but a
    snapshot is waited for. UNKNOWN: it should have reported. IGNORED: it doesn't count.
    """

    COUNTS = "counts"
    AWAITED = "awaited"
    UNKNOWN = "unknown"
    IGNORED = "ignored"


class ExpectedBrokers:
    """Holds which brokers are registered, and since when each of them has been in service."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` monotonic, in seconds."""
        self._clock = clock
        #: The registered brokers by id, and whether each is fenced; None until the cluster has listed them.
        self.brokers: Mapping[str, bool] | None = None
        self._listed_at = math.inf
        self._in_service_since: dict[str, float] = {}

    def register(self, brokers: Mapping[str, bool]) -> set[str]:
        """These are the registered brokers now, and whether each is fenced; returns those that weren't before."""
        now, before = self._clock(), self.brokers
        self._listed_at = min(self._listed_at, now)
        # A broker that comes back into service, or joins, gets startup.grace from then on.
        self._in_service_since = {b: self._in_service_since.get(b, now) for b in brokers if not brokers[b]}
        # Last, and as a whole: other threads read it without a lock.
        self.brokers = dict(brokers)
        return brokers.keys() - (before or {}).keys()

    def in_service(self) -> list[str]:
        return [broker for broker, fenced in (self.brokers or {}).items() if not fenced]

    def liveness(self, broker: str, newest: Freshness, settings: Settings, since: float = -math.inf) -> Liveness:
        """What follows for a broker from what is known of its newest snapshot.

        ``since`` is when the snapshot was first missed, monotonic. Of the settings ``startup.grace`` and
        ``fenced.brokers`` matter.
        """
        fenced = (self.brokers or {}).get(broker)
        if fenced is None:
            return Liveness.IGNORED
        if newest is Freshness.FRESH:
            return Liveness.COUNTS
        if not fenced:
            return self._of_silent(broker, newest, settings.startup_grace.total_seconds(), since)
        # A broker that never had a snapshot can't take writes until it is in service.
        if newest is Freshness.NONE:
            return Liveness.IGNORED
        return Liveness.UNKNOWN if settings.fenced_brokers == "unknown" else Liveness.COUNTS

    def _of_silent(self, broker: str, newest: Freshness, grace: float, since: float) -> Liveness:
        """A broker in service without a fresh snapshot: waited for if it has just come, else unknown."""
        began = self._in_service_since.get(broker, self._clock())
        if newest is Freshness.NONE:
            return Liveness.AWAITED if self._clock() - max(since, began) <= grace else Liveness.UNKNOWN
        if self._clock() - began > grace:
            return Liveness.UNKNOWN
        # Of a broker that was seen to come back the last volumes are exact: it took no writes meanwhile. When this
        # reader itself has just started, nobody knows for how long the broker has been running.
        return Liveness.COUNTS if began > self._listed_at else Liveness.AWAITED


def show_brokers(metrics: Metrics, stale: int, missing: int, last_known: int) -> None:
    """Show of how many other brokers the newest snapshot is stale or missing, and of how many the last one counts."""
    for attribute, number in (("Stale", stale), ("Missing", missing), ("LastKnown", last_known)):
        metrics.gauge("Brokers", "", attribute, number)
