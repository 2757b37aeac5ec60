"""At how many bytes a volume reaches a limit, in SQL: the roll-up and the history both need it."""

from __future__ import annotations


def reached_at(limit: str, capacity: str = "capacity") -> str:
    """The consumption in bytes at which a volume reaches the limit, at most its capacity; null without a limit.

    It is what ``quotahost.model.Limit.consumed_at`` returns, bounded as in ``quotahost.plugins.policies.limits``.

    Args:
        limit: an SQL expression for a struct of ``type`` and ``level``, as in a snapshot.
        capacity: one for the volume's capacity in bytes.
    """
    # A DECIMAL for the percentage: bytes times 100 may exceed a BIGINT. The bounds are those of the policy ``limits``.
    return f"""CASE {limit}.type
        WHEN 'ConsumedBytes' THEN least({limit}.level, {capacity})
        WHEN 'MinFreeBytes' THEN {capacity} - least({limit}.level, {capacity})
        WHEN 'MinFreePercentage' THEN CAST({capacity} AS DECIMAL(20, 0)) * (100 - {limit}.level) div 100
        END"""
