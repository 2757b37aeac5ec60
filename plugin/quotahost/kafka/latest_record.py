"""Keeps the latest record of a topic, and measures the age of records with this machine's monotonic clock.

1. :class:`LatestRecord` keeps the record with the largest (run, sequence).
2. :class:`ArrivalClock` measures a record's age. The record carries the time of the machine that wrote it, and that
   clock may be wrong or jump. So the age is the delay from capture to writing (:mod:`quotahost.records.fields`), plus
   the time since the record arrived, by this machine's monotonic clock.
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
    """A record, and the time when it arrived; ``live`` and ``written_ms`` are those of ``follower.OnRecord``."""

    record: R
    arrived_at: float  # monotonic seconds, in the past if the record was in the topic before
    delay: float  # seconds from the capture of its contents to its writing
    live: bool
    written_ms: int | None


class ArrivalClock:
    """Tells when a record arrived, and how old it is by the monotonic clock."""

    def __init__(self, clock: Clock, wall: Clock) -> None:
        self.now, self._wall = clock, wall
        self._ahead: float | None = None  # seconds by which Kafka's clock is ahead of the monotonic one

    def arrival(
        self, record: R, before: Arrival[R] | None, validity: float, captured_at: datetime, live: bool,
        written_ms: int | None, age_ms: int | None = None,
    ) -> Arrival[R]:  # fmt: skip
        """The arrival of a record that was just read and replaces ``before``; ``validity`` is in seconds.

        ``captured_at`` is the record's own time, ``age_ms`` the delay from capture to writing if the record states it;
        ``live`` and ``written_ms`` are those of ``follower.OnRecord``. A live record arrives now. An older record
        arrived when it was written: by Kafka's clock if a live record has shown that clock, else by this machine's.
        """
        arrived_at = now = self.now()
        delay = delay_ms(age_ms, captured_at, written_ms, int(validity * 1000)) / 1000
        if live:
            self._ahead = self._ahead if written_ms is None else written_ms / 1000 - now
        elif written_ms is None:
            arrived_at -= max(0.0, self._wall() - captured_at.timestamp() - delay)
        else:
            kafkas = self._wall() if self._ahead is None else now + self._ahead
            arrived_at -= max(0.0, kafkas - written_ms / 1000)
        if before:
            # If this machine's wall clock has jumped forward, a topic that is read again looks old. But a record
            # can't be older than the record that it replaces.
            arrived_at = max(arrived_at, before.arrived_at)
        return Arrival(record, arrived_at, delay, live, written_ms)

    def age(self, arrival: Arrival[R]) -> float:
        """Seconds since the record's contents were captured. If they exceed ``validity``, the record is stale."""
        return self.now() - arrival.arrived_at + arrival.delay


#: A record that the pipeline publishes repeatedly: ``run`` is its launch time, ``sequence`` counts the run's records.
P = TypeVar("P", ClusterRecord, Shares)


class LatestRecord(Generic[P]):
    """Keeps the record with the largest (run, sequence). Any thread may call.

    If the kept record is older than ``validity``, the next live record replaces it, even one with a smaller run: the
    clock of the machine on which the pipeline ran before may have been ahead.
    """

    def __init__(self, clock: Clock, wall: Clock) -> None:
        self._clock, self._wall = ArrivalClock(clock, wall), wall
        self._lock = threading.Lock()
        self._kept: Arrival[P] | None = None

    def take(self, record: P, live: bool, validity: float, written_ms: int | None = None) -> None:
        """Keep the record if it is newer; ``validity`` is in seconds, the others are those of ``follower.OnRecord``.

        Raises Refused if the record's run lies in the future, or if a live record is older than the kept one.
        """
        run = record.run
        # Kafka's timestamp is the time of the leader's clock. Either of the two clocks may be hours behind.
        if run > max(self._wall() * 1000, written_ms or 0) + MAX_AHEAD_MS:
            why = "the run (the pipeline's launch time in ms) lies in the future; check the pipeline's clock"
            raise Refused("ahead", f"records of run {run} are refused: {why}")
        with self._lock:
            kept = self._kept
            if kept is None or self._replaces(record, kept, live, validity):
                self._kept = self._clock.arrival(record, kept, validity, record.computed_at, live, written_ms)
                return
        if not live or _order(record) == _order(kept.record):  # it was read before, or was published twice
            return
        if run == kept.record.run:
            raise Refused("late", f"a newer record of run {run} was read before")
        why = f"records of run {run} are refused because a newer run publishes; stop one pipeline"
        raise Refused("other-pipeline", f"two pipelines run for this cluster; {why}")

    def remove(self) -> None:
        """Make the kept record stale, because a tombstone was read."""
        with self._lock:
            if self._kept:
                # The record stays, infinitely old: its volumes apply until the standby source has answered.
                self._kept = replace(self._kept, arrived_at=-math.inf)

    def read(self) -> tuple[P | None, float]:
        """The kept record and its age in seconds, infinite after a tombstone; (None, infinity) before any record."""
        # This reference is read once here, and always replaced as a whole, so a reader needs no lock.
        kept = self._kept
        return (None, math.inf) if kept is None else (kept.record, self._clock.age(kept))

    def _replaces(self, record: P, kept: Arrival[P], live: bool, validity: float) -> bool:
        if live and self._clock.age(kept) > validity:
            return True
        # Any record after a tombstone is newer than it, even the same record when the topic is read again.
        return kept.arrived_at == -math.inf or _order(record) > _order(kept.record)


def _order(record: ClusterRecord | Shares) -> tuple[int, int]:
    return record.run, record.sequence
