"""At how many bytes a volume reaches a limit, and the factor that follows, in SQL.

The roll-up and the history need the former, the roll-up also the latter.
"""

from __future__ import annotations


def reached_at(limit: str, capacity: str = "capacity") -> str:
    """The consumption in bytes at which a volume reaches the limit, at most its capacity; null without a limit.

    It is what ``quotahost.model.Limit.consumed_at`` returns, bounded as in ``broker.plugins.policies.limits``.

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


def exact_factor(consumed: str) -> str:
    """A struct that orders volumes by their factor (``quotahost.model.bounds``); those without limits come last.

    A factor is a quotient of whole numbers up to 2**63, and as doubles two of them may look alike. 54 of its digits, in
    three numbers, tell any two apart.

    Args:
        consumed: SQL for the bytes consumed. The columns softLimit and hardLimit must be there, and softAt and hardAt,
            the consumptions in bytes at which the volume reaches them.
    """
    # 18 digits at a time: a DECIMAL of 38 holds no product of two longer numbers, and a BIGINT no longer quotient.
    digits, ramp = "CAST(1000000000000000000L AS DECIMAL(19, 0))", "CAST(hardAt - softAt AS DECIMAL(19, 0))"
    first = f"CAST(hardAt - {consumed} AS DECIMAL(19, 0)) * {digits}"
    second = f"({first} % {ramp}) * {digits}"
    third = f"({second} % {ramp}) * {digits}"
    return f"""CASE
        WHEN softLimit IS NULL AND hardLimit IS NULL THEN struct(2000000000000000000L AS f1, 0L AS f2, 0L AS f3)
        WHEN {consumed} >= hardAt THEN struct(0L AS f1, 0L AS f2, 0L AS f3)
        WHEN {consumed} <= softAt THEN struct(1000000000000000000L AS f1, 0L AS f2, 0L AS f3)
        WHEN {consumed} IS NOT NULL
          THEN struct({first} div {ramp} AS f1, {second} div {ramp} AS f2, {third} div {ramp} AS f3)
        END"""
