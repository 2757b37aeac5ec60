"""Keeps the newest snapshot of every registered broker, and says of each whether it counts, is awaited or is unknown.

The factor source ``snapshots`` puts each record of its topic in here, on the follower's thread, and asks on the host
thread for all brokers; ``liveness`` has the rule. Memory only: no thread, no Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from quotahost.broker.plugins.factor_sources.liveness import ExpectedBrokers, Freshness, Patience, Standing
from quotahost.kafka.latest_record import Arrival, ArrivalClock, Stamps
from quotahost.records.snapshot import Snapshot
from quotahost.text import printable


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """One expected broker, as far as it is known."""

    broker: str
    snapshot: Snapshot | None  # the newest one, if it counts
    age: float | None  # of the newest snapshot in seconds, None without one
    problem: str = ""  # why there is no fresh snapshot, unless the broker is fenced or has just come back
    awaited: bool = False  # the broker isn't unknown yet


class Roster:
    """Takes snapshots in any order. Any thread may call.

    A snapshot's age runs from its arrival, and begins with how old the look was when it was published
    (``quotahost.kafka.latest_record``); so no jump of a wall clock makes a broker stale or fresh. Its own time
    only says which of two snapshots is newer, with two exceptions. If a snapshot that has just arrived is older
    than the kept one by more than half of ``validity``, it was not delayed for so long: its broker's clock was set
    back, and it replaces the kept one. And once the kept one is stale, the next to arrive replaces it.

    Snapshots of brokers that aren't registered are refused, so what is kept grows with the cluster only.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``clock`` monotonic, ``wall`` since the epoch, both in seconds."""
        self._clock = ArrivalClock(clock, wall)
        self._lock = threading.Lock()
        self._newest: dict[str, Arrival[Snapshot]] = {}
        self._expected = ExpectedBrokers(clock)

    def expects(self, broker: str) -> bool:
        """Whether the broker is registered."""
        return broker in (self._expected.brokers or {})

    def take(self, snapshot: Snapshot, live: bool, validity: float, written_ms: int | None = None) -> str:
        """Keep a snapshot if it is its broker's newest; ``validity`` in seconds, others as for ``follower.Reader``.

        Returns:
            "" if it is kept, else the reason why it is refused: ``late``, or ``stranger`` if its broker isn't
            registered.
        """
        with self._lock:
            if not self.expects(snapshot.broker):
                return "stranger"
            before = self._newest.get(snapshot.broker)
            if before and not self._replaces(snapshot, before, live, validity):
                return "late"
            stamps = Stamps(snapshot.captured_at, live, written_ms, snapshot.age_ms)
            self._newest[snapshot.broker] = self._clock.arrival(snapshot, stamps, before, validity)
        return ""

    def remove(self, broker: str) -> None:
        """A tombstone was read."""
        with self._lock:
            self._newest.pop(broker, None)

    def register(self, brokers: Mapping[str, bool]) -> set[str]:
        """These are the registered brokers now, and whether each is fenced; returns those that weren't before."""
        with self._lock:
            new = self._expected.register(brokers)
            self._newest = {broker: kept for broker, kept in self._newest.items() if broker in brokers}
            return new

    def known(self, patience: Patience) -> list[KnownBroker]:
        """Every registered broker that counts; none until the cluster has listed its brokers."""
        with self._lock:
            # A list, because a generator would run after the lock was released.
            return list(self._each(patience))

    def _each(self, patience: Patience) -> Iterator[KnownBroker]:
        for broker in self._expected.brokers or ():
            kept = self._newest.get(broker)
            if kept is None:
                standing = self._expected.standing(broker, Freshness.NONE, patience)
                if standing is not Standing.IGNORED:
                    problem = f"broker {printable(broker)}: no snapshot"
                    yield KnownBroker(broker, None, None, problem, standing is Standing.AWAITED)
                continue
            age = self._clock.age(kept)
            newest = Freshness.FRESH if age <= patience.validity else Freshness.STALE
            standing = self._expected.standing(broker, newest, patience)
            if standing is not Standing.IGNORED:
                yield _known(broker, kept.record, age, newest, standing, patience.validity)

    def _replaces(self, snapshot: Snapshot, before: Arrival[Snapshot], live: bool, validity: float) -> bool:
        older_by = (before.record.captured_at - snapshot.captured_at).total_seconds()
        # Of one look that is published again, because something else has changed, the record with the greater age.
        if older_by < 0 or (older_by == 0 and (snapshot.age_ms or 0) > (before.record.age_ms or 0)):
            return True
        return live and (older_by > validity / 2 or self._clock.age(before) > validity)


def _known(
    broker: str, record: Snapshot, age: float, newest: Freshness, standing: Standing, validity: float
) -> KnownBroker:
    if newest is Freshness.FRESH:
        return KnownBroker(broker, record, age)
    # Nobody knows which directories a broker will find when it starts again.
    last = replace(record, offline=())
    if standing is Standing.COUNTS:
        return KnownBroker(broker, last, age)
    # The sentence names no age: the cause of the factor would be a new one every second.
    problem = f"broker {printable(broker)}: its newest snapshot is older than validity ({validity:g} s)"
    awaited = standing is Standing.AWAITED
    return KnownBroker(broker, last if awaited else None, age, problem, awaited)
