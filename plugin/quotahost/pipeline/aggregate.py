"""Snapshots in, clusters out: DataFrame to DataFrame, in Spark's own functions."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame

from quotahost.pipeline.resources import sql
from quotahost.pipeline.rules import MAX_NAME, Rules
from quotahost.wire_cluster_read import MAX_LISTED, MAX_WORST

_FREE_SHARE: Final = (
    "if(v.capacity = 0, 0D, (double(v.capacity) - double(v.consumed)) / nullif(double(v.capacity), 0D))"
)


def state(good: DataFrame, samples: int) -> DataFrame:
    """The one stateful operator: of each broker its ``samples`` newest snapshots, tombstones included.

    Args:
        good: as ``records.parse`` gives it, without what is refused.
        samples: how many to keep for the fill rate, at least 1.

    Returns:
        topic, broker; ``h``: structs of ``seen``, ``removed``, ``s``, newest first; ``now``, the time of the batch.
        The order in which they come, late ones and duplicates don't matter.
    """
    return good.sparkSession.sql(sql("state", samples=samples), good=good)


def rollup(brokers: DataFrame, rules: Rules, ahead: int = 0) -> DataFrame:
    """One row for each cluster, in ``quotahost.clusterrecord.ClusterRecord``'s words.

    Args:
        brokers: as :func:`state` gives it.
        rules: what counts.
        ahead: ms by which Kafka's clock is ahead of the driver's.
    """
    arguments = {
        "cluster": rules.cluster,
        "ahead": ahead,
        "validity": _ms(rules.validity),
        "expiry": _ms(rules.expiry),
        "registered": json.dumps(sorted(rules.registered)),
    }
    return brokers.sparkSession.sql(_ROLLUP, args=arguments, state=brokers)


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


def _at(limit: str) -> str:
    """The consumption at which a volume reaches a limit (``quotahost.volume.Limit.consumed_at``); null without."""
    percent = f"(CAST(capacity AS DECIMAL(28, 0)) * {limit}.level + 99) div 100"
    return (
        f"CASE {limit}.type WHEN 'ConsumedBytes' THEN {limit}.level "
        f"WHEN 'MinFreeBytes' THEN greatest(0, capacity - {limit}.level) "
        f"WHEN 'MinFreePercentage' THEN greatest(0, capacity - {percent}) END"
    )


_ROLLUP: Final = sql(
    "rollup",
    free_share=_FREE_SHARE,
    soft_at=_at("softLimit"),
    hard_at=_at("hardLimit"),
    max_name=MAX_NAME,
    listed=MAX_LISTED,
    worst=MAX_WORST,
)
