"""From snapshots to the state of each broker, and from these to one row for each cluster, in Spark's own functions.

``state`` is the one stateful operator of the query: it keeps little of each broker, whatever the topic's length.
``rollup`` runs on a batch of the state and makes what :mod:`quotahost.pipeline.volumes.record` turns into records.
tests/reference/volumes.py is the same in plain Python.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quotahost.model.volumes import MAX_TOPICS
from quotahost.pipeline.spark.frames import exact_factor, large_of_stranger, reached_at, sql
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST

#: Characters of a name in a cluster's record; names are cut there, because the record would become too large. JSON
#: takes up to twelve bytes for each, and there may be some 500 names.
MAX_NAME: Final = 128
#: Of so many volumes of one kind, and of so many kinds, the topics are joined; where more tell theirs, it is all.
MAX_TELLERS: Final = 256


def _free_share(capacity: str, consumed: str) -> str:
    """A volume's free bytes as a share of its capacity, in SQL; the difference is that of whole numbers."""
    return f"if({capacity} = 0, 0D, double({capacity} - {consumed}) / nullif(double({capacity}), 0D))"


@dataclass(frozen=True, slots=True)
class Rules:
    """By what a broker is reporting, stale, missing or forgotten.

    Attributes:
        cluster: the cluster of snapshots that don't name theirs.
        validity: how old a broker's newest snapshot may be; then the broker is stale.
        expiry: how long a stale broker is listed. What its volumes were is told on, after all others.
        registered: ids of the brokers that the cluster lists, those in service; those without a snapshot are missing.
            Empty while the cluster has not answered.
    """

    cluster: str
    validity: timedelta = timedelta(minutes=1)
    expiry: timedelta = timedelta(days=1)
    registered: Collection[str] = ()


def state(good: DataFrame, window: timedelta) -> DataFrame:
    """The newest snapshot of each broker, and two earlier ones for the fill rate.

    The order in which snapshots arrive doesn't matter, nor do late ones and duplicates.

    Args:
        good: the rows of ``parse.parse`` without an error.
        window: how far a fill rate looks back at least, at most twice as far, while the broker keeps reporting.

    Returns:
        A row for each volume; one without a volume for a broker that has none; no row for a removed broker. Columns:
        broker, cluster (as in the snapshot), seen, ``first`` (true in one row of each broker), offline (log
        directories, in that row), volumeName, capacity, consumed, topics (null: all), softType, softLevel, hardType,
        hardLevel (the volume's own limit, else its broker's), ``fillRate`` (bytes/s, null while unknown), and ``now``,
        the time of the batch.
    """
    return good.sparkSession.sql(sql("state", window=_ms(window), max_name=MAX_NAME), good=good)


def cut_strangers(good: DataFrame, topic: str, listed: Collection[str]) -> DataFrame:
    """The good rows, where large snapshots of brokers that the cluster doesn't list are cut to what a record may list.

    Such a broker is a stranger's invention, or it is down: its full disk must count on. So MAX_LISTED volumes stay,
    those with the least free shares, and no topics, which stands for all.

    Args:
        good: the rows of ``parse.parse`` without an error.
        topic: the topic of the cluster that lists its brokers; other topics' snapshots stay as they are.
        listed: the ids that the cluster has listed.
    """
    volumes = F.expr(f"""slice(array_sort(transform(s.volumes, v -> struct(
        {_free_share("v.capacity", "v.consumed")} AS free, struct(left(v.volumeName, {MAX_NAME}) AS volumeName,
        v.capacity, v.consumed, v.softLimit, v.hardLimit, CAST(NULL AS ARRAY<STRING>) AS topics) AS v))),
        1, {MAX_LISTED}).v""")
    offline = F.expr(f"slice(transform(s.offlineLogDirs, d -> left(d, {MAX_NAME})), 1, {MAX_LISTED})")
    cut = F.col("s").withField("volumes", volumes).withField("offlineLogDirs", offline)
    return good.withColumn("s", F.when(large_of_stranger(topic, "broker", listed), cut).otherwise(F.col("s")))


def rollup(volumes: DataFrame, rules: Rules, ahead: int = 0) -> DataFrame:
    """One row for each cluster, with the columns that ``record.record`` reads.

    Args:
        volumes: a batch of :func:`state`.
        rules: by what brokers are judged.
        ahead: ms by which Kafka's clock is ahead of the driver's.
    """
    arguments = {
        "cluster": rules.cluster,
        "ahead": ahead,
        "validity": _ms(rules.validity),
        "expiry": _ms(rules.expiry),
        "registered": json.dumps(sorted(rules.registered)),
    }
    # The state has one partition. Spark learns that by coalesce, and doesn't shuffle the rows again.
    # A text with parameters takes 50 ms; the same query built from Column objects took 150 ms of Py4J.
    return volumes.sparkSession.sql(_ROLLUP, args=arguments, state=volumes.coalesce(1))


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _rollup_sql(tellers: int = MAX_TELLERS) -> str:
    return sql(
        "rollup",
        free_share=_free_share("v.capacity", "v.consumed"),
        kind_free_share=_free_share("capacity", "get(top, 0).consumed"),
        silent_free_share=_free_share("s.v.capacity", "s.v.consumed"),
        factor=exact_factor("get(top, 0).consumed"),
        silent_factor=exact_factor("get(silent, 0).consumed"),
        half=MAX_LISTED // 2,
        soft_at=reached_at("softLimit"),
        hard_at=reached_at("hardLimit"),
        max_name=MAX_NAME,
        listed=MAX_LISTED,
        worst=MAX_WORST,
        tellers=tellers,
        topics=MAX_TOPICS,
    )


_ROLLUP: Final = _rollup_sql()
