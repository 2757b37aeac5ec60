"""When the contents of a record were captured, by Kafka's clock, in SQL: the rule of :mod:`quotahost.records.age`."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from quotahost.records.age import MAX_DELAY_MS

_MS: Final = timedelta(milliseconds=1)


def seen_at(stated_ms: str, captured_at: str, written_at: str, validity: timedelta) -> str:
    """A TIMESTAMP: ``written_at`` less the delay of :func:`quotahost.records.age.delay_ms`.

    Where ``now`` is Kafka's present time, ``now - seen_at`` is the age of :func:`quotahost.records.age.age`, but for
    records of the future; so a record is fresh where ``seen_at >= now - validity``.

    Args:
        stated_ms: SQL for the delay that the record states, a BIGINT; null, or the text ``NULL``, if it states none.
        captured_at: SQL for the record's own time, a TIMESTAMP; null for a tombstone, which has no delay.
        written_at: SQL for Kafka's timestamp of the record.
        validity: the pipeline's.
    """
    most = min(validity // _MS // 2, MAX_DELAY_MS)
    by_clocks = f"least(greatest(unix_millis({written_at}) - unix_millis({captured_at}), 0L), {most}L)"
    stated = f"least(greatest(CAST({stated_ms} AS BIGINT), 0L), {MAX_DELAY_MS}L)"
    # The CASE, because least and greatest leave nulls out instead of returning null.
    delay = (
        f"CASE WHEN {stated_ms} IS NOT NULL THEN {stated} WHEN {captured_at} IS NOT NULL THEN {by_clocks} ELSE 0L END"
    )
    return f"timestamp_millis(unix_millis({written_at}) - ({delay}))"
