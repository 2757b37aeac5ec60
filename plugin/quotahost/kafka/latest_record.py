"""Which record of a topic counts as the newest, by (run, sequence), or any once the last is older than ``validity``;
and its age, by its arrival and no wall clock.

A record carries the time of the machine that wrote it, whose clock may be wrong or jump. So its age runs from its
arrival, on this machine's monotonic clock, and begins with the delay by the rule of :mod:`quotahost.records.fields`.
"""

import math
import threading
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from quotahost.base.background import Clock
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.records.codec import Refused
from quotahost.records.fields import MAX_AHEAD_MS, delay_ms
from quotahost.records.shares import Shares

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Arrival(Generic[R]):
    """A record, and when this reader learned of it."""

    record: R
    arrived_at: float  # monotonic seconds, in the past if the record was in the topic before
    delay: float = 0.0  # seconds from the capture of its contents to its writing


class ArrivalClock:
    """Says when a record arrived and how old it is, whatever the wall clocks do."""

    def __init__(self, clock: Clock, wall: Clock) -> None:
        self.now, self._wall = clock, wall
        self._ahead: float | None = None  # seconds by which Kafka's clock is ahead of the monotonic one

    def arrival(
        self, record: R, before: Arrival[R] | None, validity: float, captured_at: datetime, live: bool,
        written_ms: int | None, age_ms: int | None = None,
    ) -> Arrival[R]:  # fmt: skip
        """The arrival of a record that was just read and that replaces ``before``; ``validity`` in seconds.

        ``captured_at`` is the record's own time, ``age_ms`` the delay from capture to writing that it states, if it
        states one; the others as for ``follower.OnRecord``. A ``live`` record arrives now. One that was in the topic
        before arrived when it was written: by Kafka's clock, as far as live records have shown it, else by this
        machine's.
        """
        now = self.now()
        delay = delay_ms(age_ms, captured_at, written_ms, int(validity * 1000)) / 1000
        arrived_at = now
        if live:
            self._ahead = self._ahead if written_ms is None else written_ms / 1000 - now
        elif written_ms is None:
            arrived_at -= max(0.0, self._wall() - captured_at.timestamp() - delay)
        else:
            kafkas = self._wall() if self._ahead is None else now + self._ahead
            arrived_at -= max(0.0, kafkas - written_ms / 1000)
        if before:
            # If this machine's wall clock jumped forward, a topic that is read again looks old. But a record
            # can't be older than the one that it replaces.
            arrived_at = max(arrived_at, before.arrived_at)
        return Arrival(record, arrived_at, delay)

    def age(self, arrival: Arrival[R]) -> float:
        """Seconds since the record's contents were captured. Above ``validity`` it is stale."""
        return self.now() - arrival.arrived_at + arrival.delay


#: What the pipeline publishes again and again; ``run`` is when it was launched, ``sequence`` counts the run's records.
P = TypeVar("P", ClusterRecord, Shares)


class LatestRecord(Generic[P]):
    """Keeps the record with the largest (run, sequence). Any thread may call.

    Once the kept record is older than ``validity``, the next record that arrives replaces it, whatever its run is: the
    clock of the machine on which the pipeline ran before may have been ahead.
    """

    def __init__(self, clock: Clock, wall: Clock) -> None:
        self._clock, self._wall = ArrivalClock(clock, wall), wall
        self._lock = threading.Lock()
        self._kept: Arrival[P] | None = None

    def take(self, record: P, live: bool, validity: float, written_ms: int | None = None) -> None:
        """Keep the record if it is newer; ``validity`` in seconds, the others as for ``follower.OnRecord``.

        Raises Refused if it claims a run of the future, and if it is live and older than the kept one.
        """
        run = record.run
        if run > self._wall() * 1000 + MAX_AHEAD_MS:
            why = "a run is a time of launch in ms, and that one is still to come"
            raise Refused("ahead", f"records of run {run} are refused: {why}")
        with self._lock:
            kept = self._kept
            if kept is None or self._replaces(record, kept, live, validity):
                self._kept = self._clock.arrival(record, kept, validity, record.computed_at, live, written_ms)
                return
        if not live or _order(record) == _order(kept.record):  # it was read before, or was published twice
            return
        if run == kept.record.run:
            raise Refused("late", f"a newer one of run {run} was there before")
        text = f"two pipelines run for this cluster: those of run {run} are refused, those of a newer run are taken"
        raise Refused("other-pipeline", text)

    def remove(self) -> None:
        """A tombstone was read: the kept record is stale from now on."""
        with self._lock:
            if self._kept:
                # Kept, though infinitely old: its volumes hold until the standby source has answered.
                self._kept = replace(self._kept, arrived_at=-math.inf)

    def known(self) -> tuple[P | None, float]:
        """The kept record and its age in seconds, infinite after a tombstone; (None, infinity) before the first."""
        # The reference is read once and replaced as a whole, so no reader needs the lock.
        kept = self._kept
        return (None, math.inf) if kept is None else (kept.record, self._clock.age(kept))

    def _replaces(self, record: P, kept: Arrival[P], live: bool, validity: float) -> bool:
        if live and self._clock.age(kept) > validity:
            return True
        # Whatever follows a tombstone is newer than it: also the same record, when the topic is read again.
        return kept.arrived_at == -math.inf or _order(record) > _order(kept.record)


def _order(record: ClusterRecord | Shares) -> tuple[int, int]:
    return record.run, record.sequence
