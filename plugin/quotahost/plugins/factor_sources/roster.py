"""Keeps the newest snapshot of every broker, and says of each broker whether it is fresh, stale, missing or gone.

The factor source ``snapshots`` puts each record of its topic in here, on the follower's thread, and asks on the host
thread for all brokers. Memory only: no thread, no Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quotahost.plugins.kafka.newest import Arrival, ArrivalClock
from quotahost.records.snapshot import Snapshot

MAX_BROKERS: Final = 10_000  # more than any cluster has; bounds the memory that invented ids can take


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """One expected broker, as far as it is known."""

    broker: str
    snapshot: Snapshot | None  # the newest one, if it is fresh
    age: float | None  # of the newest snapshot in seconds, None without one
    problem: str = ""  # why there is no fresh snapshot
    awaited: bool = False  # the problem is younger than startup.grace, so the broker isn't unknown yet


class Roster:
    """Takes snapshots in any order. Any thread may call.

    A snapshot's age runs from its arrival (``quotahost.plugins.kafka.newest``), so no jump of a wall clock makes a
    broker stale or fresh. Its own time only says which of two snapshots is newer, with two exceptions. If a snapshot
    that has just arrived is older than the kept one by more than half of ``validity``, it was not delayed for so long:
    its broker's clock was set back, and it replaces the kept one. And once the kept one is stale, the next to arrive
    replaces it.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``clock`` monotonic, ``wall`` since the epoch, both in seconds."""
        self._clock = ArrivalClock(clock, wall)
        self._lock = threading.Lock()
        self._newest: dict[str, Arrival[Snapshot]] = {}
        self._registered: Mapping[str, bool] | None = None
        self._missed_since: dict[str, float] = {}
        self._started = clock()

    def take(self, snapshot: Snapshot, live: bool, validity: float) -> str:
        """Keep a snapshot if it is its broker's newest; ``validity`` in seconds, ``live`` as for ``follower.Reader``.

        Returns:
            "" if it is kept, else the reason why it is refused: ``late``, or ``many`` if there is no room for it.
        """
        with self._lock:
            before = self._newest.get(snapshot.broker)
            if before and not self._replaces(snapshot, before, live, validity):
                return "late"
            # Whoever may write to the topic can invent brokers, but no flood of them forgets a registered one.
            if before is None and len(self._newest) >= MAX_BROKERS and not self._make_room():
                return "many"
            arrival = self._clock.arrival(snapshot, snapshot.captured_at, live, before)
            self._newest[snapshot.broker] = arrival
        return ""

    def remove(self, broker: str) -> None:
        """A tombstone was read."""
        with self._lock:
            self._newest.pop(broker, None)

    def register(self, brokers: Mapping[str, bool]) -> None:
        """These are the registered brokers now, and whether each is fenced."""
        with self._lock:
            self._registered = dict(brokers)
            now = self._clock.now()
            # A broker that joins later gets startup.grace from its registration on.
            self._missed_since = {b: self._missed_since.get(b, now) for b in brokers}

    def known(self, validity: float, grace: float, expiry: float) -> list[KnownBroker]:
        """Every expected broker; durations in seconds: ``validity``, ``startup.grace``, ``snapshots.expiry``.

        The registered brokers are expected, fenced ones too: a broker that is missing may come back, until it is
        unregistered, or fenced and silent for ``expiry``. Until it is known which brokers are registered, all of which
        there is a snapshot are expected.
        """
        with self._lock:
            # A list, because a generator would run after the lock was released.
            return list(self._each(self._clock.now(), validity, grace, expiry))

    def _each(self, now: float, validity: float, grace: float, expiry: float) -> Iterator[KnownBroker]:
        expected = self._registered if self._registered is not None else dict.fromkeys(self._newest, False)
        for broker, fenced in expected.items():
            newest = self._newest.get(broker)
            since = newest.arrived_at if newest else self._missed_since.get(broker, self._started)
            age = now - since
            # Kafka keeps a broker that is gone for good registered: without an end it would be unknown for ever.
            if fenced and age > expiry:
                continue
            if newest and age <= validity:
                yield KnownBroker(broker, newest.record, age)
            elif newest:
                # The sentence names no age: the cause of the factor would be a new one every second.
                stale = f"broker {broker}: its newest snapshot is older than validity ({validity:g} s)"
                yield KnownBroker(broker, None, age, stale)
            else:
                yield KnownBroker(broker, None, None, f"broker {broker}: no snapshot", awaited=age <= grace)

    def _replaces(self, snapshot: Snapshot, before: Arrival[Snapshot], live: bool, validity: float) -> bool:
        older_by = (before.record.captured_at - snapshot.captured_at).total_seconds()
        if older_by < 0:
            return True
        return live and (older_by > validity / 2 or self._clock.age(before) > validity)

    def _make_room(self) -> bool:
        """Forget a broker that isn't registered; whether there was one."""
        registered = self._registered or {}
        stranger = next((broker for broker in self._newest if broker not in registered), None)
        return stranger is not None and self._newest.pop(stranger, None) is not None
