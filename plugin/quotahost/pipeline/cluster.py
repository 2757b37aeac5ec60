"""From snapshots by ``pipeline/sql/state.sql`` to each broker's state, and by ``pipeline/sql/rollup.sql`` to each
cluster's record.

:func:`state` is the one stateful operator of the query, and :func:`rollup` runs on a batch of it; :func:`record` reads
the record of a row, as brokers do, and adds what is not left to SQL. harness/rollup.py is the same in plain Python.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from quotahost.model.volumes import MAX_TOPICS, byte_limits
from quotahost.pipeline.frames import BATCH_TIME, factor, large_of_stranger, reached_at, sql
from quotahost.records.budgets import MAX_BUDGETS
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST, ClusterRecord, decode
from quotahost.records.fields import MAX_LONG, MS
from quotahost.records.snapshot import budgets as read_budgets

#: Characters of a name in a cluster's record; names are cut there, because the record would become too large. JSON
#: takes up to twelve bytes for each, and there may be some 500 names.
MAX_NAME: Final = 128
#: Of so many volumes of one kind, and of so many kinds, the topics are joined; where more tell theirs, it is all.
MAX_TELLERS: Final = 256


@dataclass(frozen=True, slots=True)
class Rules:
    """By what a broker is reporting, stale, missing or forgotten."""

    cluster: str  # the cluster of snapshots that don't name theirs
    validity: timedelta = timedelta(minutes=1)  # how old a broker's newest snapshot may be; then the broker is stale
    #: How long a stale broker is listed. What its volumes were is told on, after all others.
    expiry: timedelta = timedelta(days=1)
    #: Ids of the brokers that the cluster lists, those in service; those without a snapshot are missing. Empty while
    #: the cluster has not answered.
    registered: Collection[str] = ()
    topics: Collection[str] = ()  # those that are read, as the state may have rows of others; empty for all


# ---- state -----------------------------------------------------------------------------------------


def state(good: DataFrame, window: timedelta) -> DataFrame:
    """The newest snapshot of each broker, and two earlier ones for the fill rate; ``good`` is of ``snapshots.parse``.

    The order in which snapshots arrive doesn't matter, nor do late ones and duplicates. A fill rate looks back for a
    ``window`` at least, at most twice as far, while the broker keeps reporting.

    Returns:
        A row for each volume; one without a volume for a broker that has none; no row for a removed broker. Columns:
        broker, cluster (as in the snapshot), seen, ``first`` (true in one row of each broker), offline (log
        directories, in that row), volumeName, capacity, consumed, topics (null: all), softType, softLevel, hardType,
        hardLevel (the volume's own limit, else its broker's), ``budgets`` (JSON, in the first row), ``fillRate``
        (bytes/s, null while unknown), topic, and ``now``, the time of the batch.
    """
    return good.sparkSession.sql(sql("state", window=window // MS, max_name=MAX_NAME, now=BATCH_TIME), good=good)


def cut_strangers(good: DataFrame, topic: str, listed: Collection[str]) -> DataFrame:
    """The good rows, where large snapshots of ``topic`` by brokers that the cluster doesn't list are cut.

    Such a broker is a stranger's invention, or it is down: its full disk must count on. So MAX_LISTED volumes stay,
    those with the least free shares, no topics, which stands for all, and no budgets.
    """
    volumes = F.expr(f"""slice(array_sort(transform(s.volumes, v -> struct(
        {_free_share("v.capacity", "v.consumed")} AS free, struct(left(v.volumeName, {MAX_NAME}) AS volumeName,
        v.capacity, v.consumed, v.softLimit, v.hardLimit, CAST(NULL AS ARRAY<STRING>) AS topics) AS v))),
        1, {MAX_LISTED}).v""")
    offline = F.expr(f"slice(transform(s.offlineLogDirs, d -> left(d, {MAX_NAME})), 1, {MAX_LISTED})")
    cut = F.col("s").withField("volumes", volumes).withField("offlineLogDirs", offline)
    cut = cut.withField("budgets", F.lit(None).cast("STRING"))
    return good.withColumn("s", F.when(large_of_stranger(topic, "broker", listed), cut).otherwise(F.col("s")))


def _free_share(capacity: str, consumed: str) -> str:
    """A volume's free bytes as a share of its capacity, in SQL; the difference is that of whole numbers."""
    return f"if({capacity} = 0, 0D, double({capacity} - {consumed}) / nullif(double({capacity}), 0D))"


# ---- one row for each cluster ----------------------------------------------------------------------


def rollup(volumes: DataFrame, rules: Rules, ahead: int = 0) -> DataFrame:
    """One row for each cluster, of a batch of :func:`state`, as :func:`record` reads it.

    Kafka's clock is so many ms ``ahead`` of the driver's.
    """
    arguments = {
        "cluster": rules.cluster,
        "ahead": ahead,
        "validity": rules.validity // MS,
        "expiry": rules.expiry // MS,
        "registered": json.dumps(sorted(rules.registered)),
        "topics": json.dumps(sorted(rules.topics)),
    }
    # The state has one partition. Spark learns that by coalesce, and doesn't shuffle the rows again.
    # A text with parameters takes 50 ms; the same query built from Column objects took 150 ms of Py4J.
    return volumes.sparkSession.sql(_rollup_sql(), args=arguments, state=volumes.coalesce(1))


@cache
def _rollup_sql() -> str:
    return sql(
        "rollup",
        free_share=_free_share("v.capacity", "v.consumed"),
        kind_free_share=_free_share("capacity", "get(top, 0).consumed"),
        silent_free_share=_free_share("s.v.capacity", "s.v.consumed"),
        # In a lambda over volumes whose ``k`` is what they consume, below 0.
        seconds_to_full="if(v.fillRate > 0, double(greatest(capacity + v.k, 0)) / v.fillRate, NULL)",
        factor=factor("get(top, 0).consumed"),
        silent_factor=factor("get(silent, 0).consumed"),
        half=MAX_LISTED // 2,
        soft_at=reached_at("softLimit"),
        hard_at=reached_at("hardLimit"),
        max_name=MAX_NAME,
        listed=MAX_LISTED,
        worst=MAX_WORST,
        tellers=MAX_TELLERS,
        topics=MAX_TOPICS,
    )


# ---- the record of a row ---------------------------------------------------------------------------


def record(row: Row, rules: Rules, run: int, sequence: int) -> ClusterRecord:
    """The record of one cluster, from a row of :func:`rollup` by these rules; ``sequence`` is its number in the run.

    Raises Refused if brokers would refuse it, whatever in the snapshots is the reason.
    """
    told = decode(row["cluster"].encode(), row["record"].encode())
    volumes = [trend.volume for trend in told.fullest]
    limited = ((volume, byte_limits(volume, volume.soft, volume.hard)) for volume in volumes)
    # As the policy ``limits`` finds it; of all volumes the one with the smallest factor is among the fullest.
    factor = min((limits.ramp(volume.consumed) for volume, limits in limited if limits), default=None)
    budgets = used_budgets(row["budgets"], rules.registered if told.cluster == rules.cluster else ())
    return replace(told, run=run, sequence=sequence, smallest_factor=factor, budgets=budgets)


def used_budgets(brokers: Iterable[Any], running: Collection[str]) -> tuple[tuple[str, int, int], ...]:
    """What ``brokers`` (id, whether the snapshot is fresh, JSON of the budgets) tell of budgets of storage, added up.

    ``running`` are the ids of the brokers in service; if that isn't known, those with a fresh snapshot count as such.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    running = frozenset(running)
    for broker, fresh, json_text in brokers:
        place = 0 if (broker in running if running else fresh) else 1
        for name, part in read_budgets(json_text):
            sums[name][place] += part
    most = sorted(sums.items(), key=lambda budget: (-budget[1][0], budget[0]))[:MAX_BUDGETS]
    # A stranger may claim any number of bytes, and a number out of range would cost the cluster its record.
    return tuple((name, min(serving, MAX_LONG), min(others, MAX_LONG)) for name, (serving, others) in sorted(most))
