"""How old a record's contents are: one rule for every reader, on brokers and in the pipeline.

The age of what a record says is the time since Kafka wrote the record, and before that its *delay*: the time from the
capture (when the disks were read, the rates were measured, the pipeline computed) to the writing. Each part is measured
by one clock, so no two machines' wall clocks have to agree, and no clock that jumps makes a broker stale or fresh:

- the delay by its publisher's monotonic clock, which writes it into the record (``ageMs`` of a snapshot);
- the time since the writing, by a reader that saw the record arrive, by that reader's monotonic clock
  (``quotahost.kafka.latest_record``);
- the time since the writing, by a reader that comes later, by Kafka's clock alone: its present time less Kafka's
  timestamp of the record. The pipeline always reads so (its SQL twin is ``quotahost.pipeline.spark.frames``).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

#: No delay is longer, in ms: what a stranger writes into a record must not leave the range of any clock.
MAX_DELAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def delay_ms(stated_ms: int | None, captured_at: datetime, written_ms: int | None, validity_ms: int) -> int:
    """How long before it was written the contents of a record were captured, in ms; never negative.

    A record that states its delay is believed. Otherwise it is Kafka's timestamp less the record's own time. As these
    may be of two clocks, it is at most half of ``validity``: a publisher's clock that is wrong makes its records look
    older, but never stale.

    Args:
        stated_ms: the delay that the record states; None if it states none.
        captured_at: the record's own time (``snapshotAt``, ``usageAt``, ``computedAt``).
        written_ms: Kafka's timestamp of the record, in ms since 1970; None if it is unknown.
        validity_ms: the reader's ``validity``.
    """
    if stated_ms is not None:
        return min(max(0, stated_ms), MAX_DELAY_MS)
    if written_ms is None:
        return 0
    return min(max(0, written_ms - (captured_at - _EPOCH) // _MS), validity_ms // 2, MAX_DELAY_MS)


def age(now: float, written_at: float, delay: float) -> float:
    """How old the contents of a record are, never negative. It is stale where this is above ``validity``.

    Args:
        now: the present time, by the clock of ``written_at`` and in its unit.
        written_at: when the record arrived, by the reader's monotonic clock; or Kafka's timestamp of it, if ``now`` is
            Kafka's time.
        delay: as of :func:`delay_ms`, in the same unit.
    """
    # A leader's clock may be behind the last one's: what was written later than now was written now.
    return max(now - written_at, 0) + delay
