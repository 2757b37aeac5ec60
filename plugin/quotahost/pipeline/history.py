"""Writes the history as Parquet, in one folder for each day: every reading of every volume, and beside it by the minute
who used what (``-usage``), and what budgets held (``-budgets``).

1. A reading is a volume of a snapshot. ``quotahost report`` and ``replay`` read them (``quotahost.cli.lab.history``).
2. ``-usage`` has the busiest clients by the minute, from the records of the brokers' task ``publish-usage``: at which
   rates they produced, for ``replay``, and the bytes that they wrote and read, for ``quotahost quotas usage``.
3. ``-budgets`` has the bytes that budgets of storage held, from the snapshots. Both commands read it.

Each but the first lies in a folder of its own, the name of the history with that ending: Spark takes all folders of one
directory for parts of the same table. The history is optional, as it parses every record once more for each of them.
"""

import threading
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quotahost.pipeline.frames import in_a_line
from quotahost.pipeline.session import file_system
from quotahost.records.budgets import NAME

#: How often a file is written. A file a minute would be 525,600 a year, all of which a reader would list.
EVERY: Final = timedelta(minutes=5)
#: Of readings. capacity and consumed are bytes; soft and hard the consumption in bytes at which the volume reaches that
#: limit, null without one; day is that of ``at`` in UTC.
COLUMNS: Final = (
    "cluster STRING, broker STRING, volume STRING, at TIMESTAMP, capacity BIGINT, consumed BIGINT, soft BIGINT,"
    " hard BIGINT, topic STRING, partition INT, offset BIGINT, day DATE"
)
#: Of usage, one row for each minute, broker, client. rate, demand and quota are bytes/s as in the records of usage: the
#: mean of what it produced, the largest demand, null if it would have used whatever it gets, and its quota; null of one
#: that only fetches. written and read are the bytes of that minute.
USAGE_COLUMNS: Final = (
    "cluster STRING, broker STRING, user STRING, client STRING, at TIMESTAMP, rate DOUBLE, demand DOUBLE,"
    " quota DOUBLE, written DOUBLE, read DOUBLE, day DATE"
)
#: Of budgets, one row for each PART of the time, broker, budget: the mean of the bytes on that broker.
BUDGETS_COLUMNS: Final = "cluster STRING, broker STRING, budget STRING, at TIMESTAMP, bytes DOUBLE, day DATE"
MINUTE: Final = timedelta(minutes=1)
PART: Final = timedelta(minutes=10)
#: A record that comes later than that is left out: until then a minute is kept in memory.
LATE: Final = timedelta(minutes=5)
# One part is written at a time: where the disk hangs, its task keeps a core, and the volumes need the other one.
_WRITING: Final = threading.Lock()


def readings(snapshots: DataFrame) -> DataFrame:
    """A row of COLUMNS for each volume of each good snapshot, from rows of ``snapshots.parse``."""
    # By Kafka's clock where the broker's is far off: the day names a folder. A volume's limit is its own, else its
    # broker's (proposal 035, Metrics Snapshot, note 2).
    volumes = snapshots.where("error IS NULL").selectExpr(
        "cluster", "broker", "topic", "partition", "offset", "s", "explode(s.volumes) AS v",
        "if(at BETWEEN timestamp - INTERVAL 1 DAY AND timestamp + INTERVAL 1 HOUR, at, timestamp) AS at",
    ).selectExpr(
        "*", "v.capacity AS capacity", "if(v.softLimit.type IS NULL, s.softLimit, v.softLimit) AS softLimit",
        "if(v.hardLimit.type IS NULL, s.hardLimit, v.hardLimit) AS hardLimit",
    )  # fmt: skip
    return volumes.selectExpr(
        "cluster", "broker", "v.volumeName AS volume", "at", "capacity", "v.consumed AS consumed",
        f"{_reached_at('softLimit')} AS soft", f"{_reached_at('hardLimit')} AS hard",
        "topic", "partition", "offset", _day("at"),
    )  # fmt: skip


def _reached_at(limit: str) -> str:
    """The consumption in bytes at which a volume reaches the limit, at most its ``capacity``; null without a limit.

    It is what ``quotahost.model.Limit.consumed_at`` returns, bounded as in ``broker.plugins.policies.limits``. A limit
    is SQL for a struct of ``type`` and ``level``.
    """
    # A DECIMAL for the percentage: bytes times 100 may exceed a BIGINT.
    return f"""CASE {limit}.type
        WHEN 'ConsumedBytes' THEN least({limit}.level, capacity)
        WHEN 'MinFreeBytes' THEN capacity - least({limit}.level, capacity)
        WHEN 'MinFreePercentage' THEN CAST(capacity AS DECIMAL(20, 0)) * (100 - {limit}.level) div 100
        END"""


def uses(usage: DataFrame) -> DataFrame:
    """Rows of USAGE_COLUMNS, from rows of ``shares.parse``.

    A minute's bytes are those of its records, each of which tells what was moved in the 5 s before it at most.
    """
    good = usage.where("error IS NULL AND ts IS NOT NULL").withWatermark("ts", _interval(LATE))
    entries = good.selectExpr("clusterId AS cluster", "brokerId AS broker", "ts", "explode(clients) AS c")
    clients = entries.selectExpr(
        "*", "c.user AS user", "c.clientId AS client",
        "IF(c.quotaType = 'PRODUCE', c, NULL) AS p", "IF(c.quotaType = 'FETCH', c, NULL) AS f",
    )  # fmt: skip
    return _parts(
        clients, "ts", MINUTE, ("cluster", "broker", "user", "client"), rate="avg(p.rate)",
        demand="IF(count(p.demand) = count(p), max(p.demand), NULL)", quota="max(p.quota)",
        written="coalesce(sum(p.bytes), 0D)", read="coalesce(sum(f.bytes), 0D)",
    )  # fmt: skip


def held(snapshots: DataFrame) -> DataFrame:
    """Rows of BUDGETS_COLUMNS, from rows of ``snapshots.parse``.

    Of a wrong list of budgets, which counts as none for brokers, the entries that are good are told.
    """
    budgets = snapshots.where("error IS NULL").withWatermark("seen", _interval(LATE)).selectExpr(
        "coalesce(cluster, '') AS cluster", "broker", "seen",
        "explode(from_json(s.budgets, 'ARRAY<ARRAY<STRING>>')) AS b",
    )  # fmt: skip
    used = budgets.selectExpr("*", "get(b, 0) AS budget", "try_cast(get(b, 1) AS BIGINT) AS used")
    good = used.where(f"budget RLIKE r'\\A(?:{NAME.pattern})\\z' AND used >= 0")
    return _parts(good, "seen", PART, ("cluster", "broker", "budget"), bytes="avg(used)")


def _parts(rows: DataFrame, time: str, width: timedelta, keys: Sequence[str], **values: str) -> DataFrame:
    """A row for each part of the time, so wide, and for these keys, with values that are aggregates in SQL."""
    part = F.window(time, _interval(width)).alias("part")
    found = rows.groupBy(part, *keys).agg(*(F.expr(value).alias(name) for name, value in values.items()))
    return found.selectExpr(*keys, "part.start AS at", *values, _day("part.start"))


def folder(directory: str, part: str) -> str:
    """Where a part of a history lies: the readings in the directory itself, all others beside it."""
    return directory.rstrip("/") + ("" if part == READINGS else f"-{part}")


def checkpoint(directory: str, part: str) -> str:
    """Where the checkpoint of its query lies; readers leave out names that begin so."""
    return f"{folder(directory, part)}/_checkpoint"


def _day(time: str) -> str:
    # In UTC, whatever the time zone of the session is.
    return f"date_from_unix_date(CAST(floor(unix_micros({time}) / 86400000000D) AS INT)) AS day"


def _interval(time: timedelta) -> str:
    return f"{int(time.total_seconds() * 1000)} milliseconds"


#: The parts of a history by their names, each with the function that makes its rows of the parsed usage records, or of
#: the parsed snapshots.
READINGS: Final = "history"
USAGE: Final = "usage"
PARTS: Final = {READINGS: readings, "budgets": held, USAGE: uses}


def append(records: DataFrame, part: str, directory: str, every: timedelta = EVERY) -> StreamingQuery:
    """Start to append a part to Parquet, each row exactly once, in a folder for each day (``day=2026-11-21``).

    ``records`` is a stream of what the part is made of, ``directory`` that of the history, any path that Hadoop knows.
    ``every`` is how often a batch is written, one file for each day of which it has rows.
    """
    path = folder(directory, part)
    writer = PARTS[part](records).writeStream.queryName(f"quotahost-{part}")
    writer = writer.option("checkpointLocation", checkpoint(directory, part))
    writer = writer.foreachBatch(in_a_line(partial(_write, path)))
    return writer.trigger(processingTime=_interval(every)).start()


def _write(path: str, batch: DataFrame, number: int) -> None:
    """Write a batch; one that is done again after a crash keeps the files that it has, which it knows by their names.

    The topic may have been compacted since, and the batch has fewer rows then. Spark's own sink would keep a list of
    all files by their whole paths (docs/internals.md).
    """
    system, staged = file_system(batch.sparkSession, f"{path}/_batch")
    with _WRITING:
        batch.coalesce(1).write.partitionBy("day").mode("overwrite").parquet(staged.toString())
    # Another checkpoint counts batches from 0 again.
    query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    # Not by a pattern: the directory's own name may have one's characters.
    days = (entry.getPath() for entry in system.listStatus(staged) if entry.isDirectory())
    for file in (entry.getPath() for day in days for entry in system.listStatus(day)):
        day = staged.getParent().suffix(f"/{file.getParent().getName()}")
        kept = day.suffix(f"/{query}-{number}.parquet")
        system.mkdirs(day)
        if not (system.exists(kept) or system.rename(file, kept)):
            raise OSError(f"{file.toString()} can't be renamed to {kept.toString()}")
