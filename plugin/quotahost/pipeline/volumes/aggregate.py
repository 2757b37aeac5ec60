"""Aggregates accepted snapshots to one row for each cluster, in Spark's own functions (sql/state.sql, sql/rollup.sql).

``state`` keeps each broker's newest snapshot, ``rollup`` sums up the brokers of each cluster. The rows go on to
``record``.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame

from quotahost.pipeline.spark.resources import sql
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST

# TODO(merge) What a roll-up goes by.


MAX_NAME: Final = (
    256  # characters of a name in a cluster's record: with longer ones it would not fit into one
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Which brokers the record is about, and which of them are stale.

    Attributes:
        cluster: the cluster of snapshots that don't name theirs.
        validity: how old a broker's newest snapshot may be; then the broker is stale.
        expiry: how long a stale broker is listed; then it is forgotten.
        registered: ids of the cluster's brokers, as the cluster itself lists them.
    """

    cluster: str
    validity: timedelta = timedelta(minutes=1)
    expiry: timedelta = timedelta(days=1)
    registered: Collection[str] = field(default_factory=tuple)


_FREE_SHARE: Final = (
    "if(v.capacity = 0, 0D, (double(v.capacity) - double(v.consumed)) / nullif(double(v.capacity), 0D))"
)


def state(good: DataFrame, window: timedelta) -> DataFrame:
    """The one stateful operator: of each broker its newest snapshot, and two from before for the fill rate.

    Args:
        good: as ``parse.parse`` gives it, without the refused records.
        window: a fill rate looks back so far or further, twice at most, where the broker reports all the time.

    Returns:
        A row for each volume, one without a volume where a broker has none, none for a removed broker: broker,
        cluster (as the snapshot names it), seen, ``first`` for one of each broker's rows, offline log directories
        (with ``first``), volumeName, capacity, consumed, softType, softLevel, hardType, hardLevel (its own limit or
        its broker's), ``fill`` (bytes/s, null while unknown), and ``now``, the time of the batch.
        The order in which snapshots come, late ones and duplicates don't matter.
    """
    return good.sparkSession.sql(sql("state", window=_ms(window), max_name=MAX_NAME), good=good)


def rollup(volumes: DataFrame, rules: Rules, ahead: int = 0) -> DataFrame:
    """One row for each cluster, in ``quotahost.records.cluster_volumes.ClusterRecord``'s words.

    Args:
        volumes: as :func:`state` gives it.
        rules: which records are too old, and which brokers are expected.
        ahead: ms by which Kafka's clock is ahead of the driver's.
    """
    arguments = {
        "cluster": rules.cluster,
        "ahead": ahead,
        "validity": _ms(rules.validity),
        "expiry": _ms(rules.expiry),
        "registered": json.dumps(sorted(rules.registered)),
    }
    # It has one partition; now Spark knows, and shuffles it no more.
    return volumes.sparkSession.sql(_ROLLUP, args=arguments, state=volumes.coalesce(1))


def _ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


def _at(limit: str) -> str:
    """The consumption at which a volume reaches a limit (``quotahost.model.Limit.consumed_at``); null without."""
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
