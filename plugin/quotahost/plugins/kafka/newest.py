"""The newest record of this broker's cluster, and how old it is."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from quotahost.records.cluster_volumes import ClusterRecord


@dataclass(frozen=True, slots=True)
class _Kept:
    """A record, and when it was fresh, on the monotonic clock."""

    record: ClusterRecord
    fresh_at: float


class Newest:
    """Takes records as they are read, and keeps the one with the largest (run, sequence).

    Once that one is older than ``validity``, the next to arrive counts, whatever its run: the clock of the machine that
    ran the pipeline before may have been ahead. How old a record is goes by when it arrived, by the monotonic clock;
    only what was in the topic before goes by its own time. So no jump of a wall clock makes it fresh or stale.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``clock`` monotonic, ``wall`` since the epoch, both in seconds."""
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._kept: _Kept | None = None
        self._outlived: int | None = None

    def take(self, record: ClusterRecord, live: bool, validity: float) -> str:
        """A record of this cluster was read; "" if nothing is wrong with it, else what: ``late`` or ``rival``.

        ``rival`` is one of an older run, while a newer run publishes: two pipelines run.
        """
        now = self._clock()
        with self._lock:
            kept = self._kept
            if kept is None or self._counts(kept, record, live, now - kept.fresh_at > validity):
                self._keep(record, live, now)
                return ""
        if not live or record.order == kept.record.order:  # it was read before, or published twice
            return ""
        return "rival" if record.run < kept.record.run else "late"

    def remove(self) -> None:
        """A tombstone was read: what is kept is stale from now on."""
        with self._lock:
            if self._kept:
                self._kept = _Kept(self._kept.record, -math.inf)

    def known(self) -> tuple[ClusterRecord | None, float]:
        """The record and its age in seconds; before the first None, and no age."""
        kept = self._kept
        return (None, math.inf) if kept is None else (kept.record, self._clock() - kept.fresh_at)

    def _counts(self, kept: _Kept, record: ClusterRecord, live: bool, stale: bool) -> bool:
        if live and stale:
            return True
        return record.order > kept.record.order and (live or record.run != self._outlived)

    def _keep(self, record: ClusterRecord, live: bool, now: float) -> None:
        fresh_at = now if live else now - max(0.0, self._wall() - record.computed_at.timestamp())
        if kept := self._kept:
            # Read again after a jump of this clock, it is no older than what it follows.
            fresh_at = max(fresh_at, kept.fresh_at)
            if record.run < kept.record.run:  # which must not come back when the topic is read again
                self._outlived = kept.record.run
        self._kept = _Kept(record, fresh_at)
