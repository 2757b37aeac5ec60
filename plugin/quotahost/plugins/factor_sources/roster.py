"""The newest snapshot of every broker, and what is known of each: fresh, stale, missing, removed, unknown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quotahost.plugins.kafka.newest import Arrival, ArrivalClock
from quotahost.records.snapshot import Snapshot

MAX_BROKERS: Final = 10_000  # more than any cluster has; a flood of invented ids ends there


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one broker: its newest snapshot if it counts, its age in seconds, or why it doesn't."""

    broker: str
    snapshot: Snapshot | None
    age: float | None
    problem: str = ""
    patient: bool = False  # it is not missed yet


class Roster:
    """Takes snapshots as they are read, in any order, and tells what is known of every expected broker.

    How old a snapshot is goes by when it arrived, by the monotonic clock, so that no jump of a wall clock, here or
    there, makes it fresh or stale. Only what was in the topic before this broker started goes by its own time.
    A snapshot counts as newer by its own time, so that it doesn't matter in which order they are read. But one that
    arrives and is older than the last by half of ``validity`` was not held up for so long, it was taken after a clock
    was put right: it counts. And once the newest is stale, the next to arrive counts, whatever its time.
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
        """A snapshot was read; "" if it is the broker's newest now, else why not: ``late`` or ``many``."""
        with self._lock:
            before = self._newest.get(snapshot.broker)
            if before and not self._replaces(snapshot, before, live, validity):
                return "late"
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
        """The brokers of the cluster, and whether each is fenced (stopped), are these now."""
        with self._lock:
            self._registered = dict(brokers)
            now = self._clock.now()
            self._missed_since = {b: self._missed_since.get(b, now) for b in brokers}

    def known(self, validity: float, grace: float, expiry: float) -> list[Known]:
        """Every expected broker; durations in seconds: ``validity``, ``startup.grace``, ``snapshots.expiry``.

        Expected are the registered brokers, stopped ones too: a missing broker is missing, not gone, until it is
        unregistered, or stopped and silent for ``expiry``. Until they are known, all that have a snapshot are.
        """
        with self._lock:
            return list(self._each(self._clock.now(), validity, grace, expiry))

    def _each(self, now: float, validity: float, grace: float, expiry: float) -> Iterator[Known]:
        expected = self._registered if self._registered is not None else dict.fromkeys(self._newest, False)
        for broker, fenced in expected.items():
            newest = self._newest.get(broker)
            since = newest.arrived_at if newest else self._missed_since.get(broker, self._started)
            age = now - since
            if fenced and age > expiry:
                continue
            if newest and age <= validity:
                yield Known(broker, newest.record, age)
            elif newest:
                yield Known(broker, None, age, _stale(broker, validity))
            else:
                yield Known(broker, None, None, f"broker {broker}: no snapshot", patient=age <= grace)

    def _replaces(self, snapshot: Snapshot, before: Arrival[Snapshot], live: bool, validity: float) -> bool:
        earlier_by = (before.record.captured_at - snapshot.captured_at).total_seconds()
        if earlier_by < 0:
            return True
        return live and (self._clock.age(before) > validity or earlier_by > validity / 2)

    def _make_room(self) -> bool:
        """Forget a broker that the cluster doesn't know, if there is one."""
        registered = self._registered or {}
        stranger = next((broker for broker in self._newest if broker not in registered), None)
        return stranger is not None and self._newest.pop(stranger, None) is not None


def _stale(broker: str, validity: float) -> str:
    """Without its age: who compares sentences would see a new one every second."""
    return f"broker {broker}: its newest snapshot is older than validity ({validity:g} s)"
