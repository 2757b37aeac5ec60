"""Which brokers count as alive, and how far: the one rule of all factor sources that ask more than one broker.

Only a broker that runs can fill a disk. So a broker is unknown if it runs and is silent, and not if it is fenced
(Kafka's term for a registered broker that is not in service): then its last known volumes count, and a disk that was
full when its broker died stays full until the broker is back or unregistered. A broker that isn't registered never
counts. With ``fenced.brokers=unknown`` a fenced broker is unknown like a silent one (the strict form).

``snapshots`` and ``cluster-volumes`` ask here at each read; memory only, no thread, no Kafka.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Self

from quotahost.settings.broker import Settings


class Freshness(Enum):
    """What is known of a broker's newest snapshot: it is within ``validity``, it is older, or there is none."""

    FRESH = "fresh"
    STALE = "stale"
    NONE = "none"


class Standing(Enum):
    """What follows for a broker.

    COUNTS: its newest snapshot counts, whatever its age, and nothing of it is unknown. AWAITED: the same, but a
    snapshot is waited for. UNKNOWN: it should have reported. IGNORED: it doesn't count.
    """

    COUNTS = "counts"
    AWAITED = "awaited"
    UNKNOWN = "unknown"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Patience:
    """The settings by which brokers are judged; times in seconds.

    Attributes:
        validity: ``validity``.
        grace: ``startup.grace``.
        strict: ``fenced.brokers=unknown``.
    """

    validity: float
    grace: float
    strict: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Those in force."""
        validity, grace = settings.validity.total_seconds(), settings.startup_grace.total_seconds()
        return cls(validity, grace, settings.fenced_brokers == "unknown")


class ExpectedBrokers:
    """Holds which brokers are registered, and since when each of them has been in service.

    Attributes:
        brokers: the registered brokers by id, and whether each is fenced; None until the cluster has listed them.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` monotonic, in seconds."""
        self._clock = clock
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
        """The registered brokers that are not fenced."""
        return [broker for broker, fenced in (self.brokers or {}).items() if not fenced]

    def standing(self, broker: str, newest: Freshness, patience: Patience, since: float = -math.inf) -> Standing:
        """What follows for a broker from what is known of its newest snapshot.

        Args:
            broker: its id.
            newest: what is known.
            patience: the settings.
            since: when the snapshot was first missed; monotonic.
        """
        fenced = (self.brokers or {}).get(broker)
        if fenced is None:
            return Standing.IGNORED
        if newest is Freshness.FRESH:
            return Standing.COUNTS
        if not fenced:
            return self._silent(broker, newest, patience, since)
        # A broker that never had a snapshot can't take writes until it is in service.
        if newest is Freshness.NONE:
            return Standing.IGNORED
        return Standing.UNKNOWN if patience.strict else Standing.COUNTS

    def _silent(self, broker: str, newest: Freshness, patience: Patience, since: float) -> Standing:
        """A broker in service without a fresh snapshot: waited for if it has just come, else unknown."""
        began = self._in_service_since.get(broker, self._clock())
        if newest is Freshness.NONE:
            waiting = self._clock() - max(since, began) <= patience.grace
            return Standing.AWAITED if waiting else Standing.UNKNOWN
        if self._clock() - began > patience.grace:
            return Standing.UNKNOWN
        # Of a broker that was seen to come back the last volumes are exact: it took no writes meanwhile. When this
        # reader itself has just started, nobody knows for how long the broker has been running.
        return Standing.COUNTS if began > self._listed_at else Standing.AWAITED
