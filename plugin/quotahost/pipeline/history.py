"""The history's queries append volumes' readings, clients' usage and budgets' bytes to Parquet, in a folder per day.

1. A reading is one volume of one snapshot. ``quotahost report`` and ``replay`` read the readings
   (``quotahost.cli.lab.history``).
2. ``-usage`` has the busiest clients of each minute, from the records of the brokers' task ``publish-usage``: their
   produce rates, for ``replay``, and the bytes that they wrote and read, for ``quotahost quotas usage``.
3. ``-budgets`` has the bytes that budgets of storage held, from the snapshots, for ``replay`` and ``quotas usage``.

The parts 2 and 3 have folders of their own, named like the history's folder with that suffix, because Spark reads all
folders of one directory as one table. The history is optional, because each part parses every record once more.
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

#: The time between two files. One file a minute would make 525,600 files a year, and a reader lists all files.
EVERY: Final = timedelta(minutes=5)
#: The columns of readings. ``capacity`` and ``consumed`` are bytes; ``soft`` and ``hard`` are the consumption in bytes
#: at which the volume reaches that limit, null if there is no limit; ``day`` is the day of ``at`` in UTC.
COLUMNS: Final = (
    "cluster STRING, broker STRING, volume STRING, at TIMESTAMP, capacity BIGINT, consumed BIGINT, soft BIGINT,"
    " hard BIGINT, topic STRING, partition INT, offset BIGINT, day DATE"
)
#: The columns of usage, one row for each minute, broker and client. ``rate`` (the mean produce rate), ``demand`` (the
#: largest one, null if the client would have used any rate) and ``quota`` are bytes/s as in the usage records, and null
#: for a client that only fetches. ``written`` and ``read`` are the bytes of that minute.
USAGE_COLUMNS: Final = (
    "cluster STRING, broker STRING, user STRING, client STRING, at TIMESTAMP, rate DOUBLE, demand DOUBLE,"
    " quota DOUBLE, written DOUBLE, read DOUBLE, day DATE"
)
#: The columns of budgets, one row for each PART of the time, broker and budget: the mean of the bytes on that broker.
BUDGETS_COLUMNS: Final = "cluster STRING, broker STRING, budget STRING, at TIMESTAMP, bytes DOUBLE, day DATE"
MINUTE: Final = timedelta(minutes=1)
PART: Final = timedelta(minutes=10)
#: A record that arrives later than this is left out, because Spark keeps each minute in memory until then.
LATE: Final = timedelta(minutes=5)
# Only one part is written at a time: if the disk hangs, the part's task holds a core, and the volumes need another.
_WRITING: Final = threading.Lock()


def readings(snapshots: DataFrame) -> DataFrame:
    """Return a row of COLUMNS for each volume of each good snapshot, from rows of ``snapshots.parse``."""
    # If the broker's clock is far off, Kafka's timestamp counts, because the day names a folder. A volume without a
    # limit of its own has its broker's limit (proposal 035, Metrics Snapshot, note 2).
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
    """Return SQL for the consumption in bytes at which a volume reaches the limit; null if there is no limit.

    The consumption is that of ``quotahost.model.Limit.consumed_at``, at most ``capacity``, as in
    ``broker.plugins.policies.limits``. ``limit`` is SQL for a struct of ``type`` and ``level``.
    """
    # The percentage needs a DECIMAL: bytes times 100 may exceed a BIGINT.
    return f"""CASE {limit}.type
        WHEN 'ConsumedBytes' THEN least({limit}.level, capacity)
        WHEN 'MinFreeBytes' THEN capacity - least({limit}.level, capacity)
        WHEN 'MinFreePercentage' THEN CAST(capacity AS DECIMAL(20, 0)) * (100 - {limit}.level) div 100
        END"""


def uses(usage: DataFrame) -> DataFrame:
    """Return rows of USAGE_COLUMNS, from rows of ``shares.parse``.

    The bytes of a minute are the sum over its records. Each record has the bytes of the 5 s before it at most.
    """
    good = usage.where("error IS NULL AND ts IS NOT NULL").withWatermark("ts", _interval(LATE))
    # With explode Spark leaves out records without clients, before the watermark: the last minutes before all clients
    # pause would not be written until one of them comes back. The same holds for budgets.
    entries = good.selectExpr("clusterId AS cluster", "brokerId AS broker", "ts", "explode_outer(clients) AS c")
    clients = entries.where("c IS NOT NULL").selectExpr(
        "*", "c.user AS user", "c.clientId AS client",
        "IF(c.quotaType = 'PRODUCE', c, NULL) AS p", "IF(c.quotaType = 'FETCH', c, NULL) AS f",
    )  # fmt: skip
    return _parts(
        clients, "ts", MINUTE, ("cluster", "broker", "user", "client"), rate="avg(p.rate)",
        demand="IF(count(p.demand) = count(p), max(p.demand), NULL)", quota="max(p.quota)",
        written="coalesce(sum(p.bytes), 0D)", read="coalesce(sum(f.bytes), 0D)",
    )  # fmt: skip


def held(snapshots: DataFrame) -> DataFrame:
    """Return rows of BUDGETS_COLUMNS, from rows of ``snapshots.parse``.

    If a snapshot has a wrong list of budgets, brokers ignore the whole list; the history keeps the list's good entries.
    """
    budgets = snapshots.where("error IS NULL").withWatermark("seen", _interval(LATE)).selectExpr(
        "coalesce(cluster, '') AS cluster", "broker", "seen",
        "explode_outer(from_json(s.budgets, 'ARRAY<ARRAY<STRING>>')) AS b",
    )  # fmt: skip
    used = budgets.selectExpr("*", "get(b, 0) AS budget", "try_cast(get(b, 1) AS BIGINT) AS used")
    good = used.where(f"budget RLIKE r'\\A(?:{NAME.pattern})\\z' AND used >= 0")
    return _parts(good, "seen", PART, ("cluster", "broker", "budget"), bytes="avg(used)")


def _parts(rows: DataFrame, time: str, width: timedelta, keys: Sequence[str], **values: str) -> DataFrame:
    """Return a row for each time window of this ``width`` and each set of ``keys``; ``values`` are SQL aggregates."""
    part = F.window(time, _interval(width)).alias("part")
    found = rows.groupBy(part, *keys).agg(*(F.expr(value).alias(name) for name, value in values.items()))
    return found.selectExpr(*keys, "part.start AS at", *values, _day("part.start"))


def folder(directory: str, part: str) -> str:
    """Return the folder of a history's part: the directory itself for readings, a folder beside it for the others."""
    return directory.rstrip("/") + ("" if part == READINGS else f"-{part}")


def checkpoint(directory: str, part: str) -> str:
    """Return the folder of the part's checkpoint; readers of Parquet ignore names that begin with an underscore."""
    return f"{folder(directory, part)}/_checkpoint"


def _day(time: str) -> str:
    # The day is in UTC, whatever the session's time zone is.
    return f"date_from_unix_date(CAST(floor(unix_micros({time}) / 86400000000D) AS INT)) AS day"


def _interval(time: timedelta) -> str:
    return f"{int(time.total_seconds() * 1000)} milliseconds"


#: The parts of a history by name, each with the function that makes its rows from the parsed usage records or from the
#: parsed snapshots.
READINGS: Final = "history"
USAGE: Final = "usage"
PARTS: Final = {READINGS: readings, "budgets": held, USAGE: uses}


def append(records: DataFrame, part: str, directory: str, every: timedelta = EVERY) -> StreamingQuery:
    """Start a query that appends a part to Parquet, each row exactly once, in a folder per day (``day=2026-11-21``).

    ``records`` is a stream of the parsed records, and ``directory`` is the history's, any path that Hadoop knows.
    ``every`` is the time between two batches; a batch writes one file for each day that it has rows of.
    """
    path = folder(directory, part)
    writer = PARTS[part](records).writeStream.queryName(f"quotahost-{part}")
    writer = writer.option("checkpointLocation", checkpoint(directory, part))
    writer = writer.foreachBatch(in_a_line(partial(_write, path)))
    return writer.trigger(processingTime=_interval(every)).start()


def _write(path: str, batch: DataFrame, number: int) -> None:
    """Write a batch. If Spark repeats a batch after a crash, the files that it has already written stay.

    Kafka may have compacted the topic since, so the repeated batch may have fewer rows. Spark's own sink would keep a
    list of all files with absolute paths (docs/internals.md).
    """
    system, staged = file_system(batch.sparkSession, f"{path}/_batch")
    with _WRITING:
        batch.coalesce(1).write.partitionBy("day").mode("overwrite").parquet(staged.toString())
    # With a new checkpoint Spark counts batches from 0 again, so the file's name has the query's id, too.
    query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    # A glob pattern would fail if the directory's own name has a pattern's characters.
    days = (entry.getPath() for entry in system.listStatus(staged) if entry.isDirectory())
    for file in (entry.getPath() for day in days for entry in system.listStatus(day)):
        day = staged.getParent().suffix(f"/{file.getParent().getName()}")
        kept = day.suffix(f"/{query}-{number}.parquet")
        system.mkdirs(day)
        if not (system.exists(kept) or system.rename(file, kept)):
            raise OSError(f"{file.toString()} can't be renamed to {kept.toString()}")
