"""The newest snapshot of every broker, and what is known of each: fresh, stale, missing, removed, unknown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quotahost.records.snapshot import Snapshot

MAX_BROKERS: Final = 10_000  # more than any cluster has; a flood of invented ids ends there


@dataclass(slots=True)
class _Entry:
    """A broker's newest snapshot, when it was taken (epoch seconds) and last fresh (monotonic seconds)."""

    snapshot: Snapshot
    taken: float
    fresh_at: float


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
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._registered: Mapping[str, bool] | None = None
        self._missed_since: dict[str, float] = {}
        self._started = clock()

    def take(self, snapshot: Snapshot, live: bool, validity: float) -> str:
        """A snapshot was read; "" if it is the broker's newest now, else why not: ``late`` or ``many``."""
        now, wall, taken = self._clock(), self._wall(), snapshot.captured_at.timestamp()
        with self._lock:
            kept = self._entries.get(snapshot.broker)
            if kept and taken <= kept.taken and not (live and _overtaken(kept, taken, now, validity)):
                return "late"
            if kept is None and len(self._entries) >= MAX_BROKERS and not self._make_room():
                return "many"
            fresh_at = now if live else now - max(0.0, wall - taken)
            if kept:  # read again after a jump of this clock, it is no older than what it follows
                fresh_at = max(fresh_at, kept.fresh_at)
            self._entries[snapshot.broker] = _Entry(snapshot, taken, fresh_at)
        return ""

    def remove(self, broker: str) -> None:
        """A tombstone was read."""
        with self._lock:
            self._entries.pop(broker, None)

    def register(self, brokers: Mapping[str, bool]) -> None:
        """The brokers of the cluster, and whether each is fenced (stopped), are these now."""
        with self._lock:
            self._registered = dict(brokers)
            now = self._clock()
            self._missed_since = {b: self._missed_since.get(b, now) for b in brokers}

    def known(self, validity: float, grace: float, expiry: float) -> list[Known]:
        """Every expected broker; durations in seconds: ``validity``, ``startup.grace``, ``snapshots.expiry``.

        Expected are the registered brokers, stopped ones too: a missing broker is missing, not gone, until it is
        unregistered, or stopped and silent for ``expiry``. Until they are known, all that have a snapshot are.
        """
        with self._lock:
            return list(self._each(self._clock(), validity, grace, expiry))

    def _each(self, now: float, validity: float, grace: float, expiry: float) -> Iterator[Known]:
        expected = self._registered if self._registered is not None else dict.fromkeys(self._entries, False)
        for broker, fenced in expected.items():
            entry = self._entries.get(broker)
            since = entry.fresh_at if entry else self._missed_since.get(broker, self._started)
            age = now - since
            if fenced and age > expiry:
                continue
            if entry and age <= validity:
                yield Known(broker, entry.snapshot, age)
            elif entry:
                yield Known(broker, None, age, _stale(broker, validity))
            else:
                yield Known(broker, None, None, f"broker {broker}: no snapshot", patient=age <= grace)

    def _make_room(self) -> bool:
        """Forget a broker that the cluster doesn't know, if there is one."""
        registered = self._registered or {}
        stranger = next((broker for broker in self._entries if broker not in registered), None)
        return stranger is not None and self._entries.pop(stranger, None) is not None


def _overtaken(kept: _Entry, taken: float, now: float, validity: float) -> bool:
    """Whether a live snapshot counts although its own time says that it is older."""
    return now - kept.fresh_at > validity or kept.taken - taken > validity / 2


def _stale(broker: str, validity: float) -> str:
    """Without its age: who compares sentences would see a new one every second."""
    return f"broker {broker}: its newest snapshot is older than validity ({validity:g} s)"
