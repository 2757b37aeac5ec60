"""``quotahost quotas usage``: who used what in a month, by the labels of the declared files (``(no label)`` for the
rest), bytes stored in byte-hours, for a bill; and hours without records.

1. Spark sums the month of the pipeline's history (``quotahost.pipeline.history``): a row for each client, with the
   bytes that it wrote and read, and one for each budget of storage, with the bytes that it held.
2. Each row goes to the label of the most specific entity that has one. What has none goes to the label "", so that the
   sums of all labels are those of all that is recorded.
3. The hours of which nothing is recorded are counted, as a bill must not take them for hours without use.

Storage is billed by bytes times time: a team that fills a budget on the last day pays for a day. So a budget's bytes
are summed as byte-hours, each recorded part of the time with its mean. A month, a day and an hour are those of UTC.

No more than a row for each label and hour is kept here, however many clients there are.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quotahost.base.errors import QuotahostError
from quotahost.cli.lab.curves import Question
from quotahost.cli.lab.history import TURN_ON, stored
from quotahost.cli.quotas.plan import Entity
from quotahost.model import DEFAULT
from quotahost.pipeline.history import BUDGETS_COLUMNS, EVERY, LATE, PART, USAGE_COLUMNS, folder

_HOUR: Final = timedelta(hours=1)


@dataclass(slots=True)
class Sum:
    """What one label used in the month: bytes from and to clients; of budgets byte-hours, mean and newest bytes."""

    written: float = 0.0
    read: float = 0.0
    byte_hours: float = 0.0
    mean: float = 0.0
    newest: float = 0.0


@dataclass(slots=True)
class Bill:
    """All that is recorded of a month."""

    since: datetime  # the first time of the month
    until: datetime  # that of the next one
    #: By cluster and label; the label "" is of what has none.
    sums: dict[tuple[str, str], Sum] = field(default_factory=lambda: defaultdict(Sum))
    #: By cluster the hours of which something is recorded, counted from 1970 on.
    hours: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: The kinds of records that the history has none of, and what to turn on for them.
    missing: list[str] = field(default_factory=list)

    @property
    def length(self) -> int:
        return (self.until - self.since) // _HOUR

    @property
    def written_by(self) -> datetime:
        """When the pipeline has written the last minutes: records may be late, and it writes from time to time."""
        return self.until + LATE + 2 * EVERY


def parse_month(text: str) -> tuple[datetime, datetime]:
    """The first time of a month such as 2026-11, and of the next one, in UTC. Raises ValueError if it is no month."""
    try:
        since = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        return since, (since + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError):
        raise ValueError("is no month; write one like 2026-11") from None


def last_month(now: datetime) -> str:
    """The last month that is over, as :func:`parse_month` reads it."""
    return f"{now.replace(day=1) - timedelta(days=1):%Y-%m}"


def label_of(labels: Mapping[Entity, str], user: str, client_id: str) -> str:
    """The label of a client; "" if it has none.

    An entity without a label leaves the client to a less specific one. Of the same names in both sections of a file,
    the cluster-wide quota's label counts.
    """
    for by_user, by_client_id in (
        (user, client_id), (user, DEFAULT), (user, None), (DEFAULT, client_id), (None, client_id),
        (DEFAULT, DEFAULT), (DEFAULT, None), (None, DEFAULT),
    ):  # fmt: skip
        for in_cluster in (True, False):
            if label := labels.get(Entity(by_user, by_client_id, in_cluster=in_cluster)):
                return label
    return ""


def bill(
    spark: SparkSession, history: str, month: tuple[datetime, datetime], clusters: Sequence[str],
    labels: Mapping[Entity, str],
) -> Bill:  # fmt: skip
    """Sum a month of the history: the folder that was given to the pipeline. Without ``clusters`` all count.

    Raises QuotahostError if nothing is recorded of that month.
    """
    since, until = (time.timestamp() for time in month)
    made, question = Bill(*month), Question(history, tuple(clusters), since=since, until=until)
    for name, columns, add, lacking in _KINDS:
        rows = stored(spark, columns, folder(history, name), question)
        hour = F.expr("unix_micros(at) div 3600000000L").alias("hour")
        if not (hours := rows.select("cluster", hour).distinct().collect()):
            made.missing.append(lacking)
            continue
        for row in hours:
            made.hours[row["cluster"]].add(row["hour"])
        add(made, rows, labels)
    if not made.sums:
        of = f" of cluster {' or '.join(clusters)}" if clusters else ""
        raise QuotahostError(
            f"nothing is recorded{of} in {made.since:%Y-%m}. Clients are recorded where brokers have the task "
            f"publish-usage and cluster-wide quotas, and stored bytes where they have budgets=on; {TURN_ON}"
        )
    return made


def _add_clients(made: Bill, rows: DataFrame, labels: Mapping[Entity, str]) -> None:
    sums = rows.groupBy("cluster", "user", "client").agg(F.sum("written").alias("written"), F.sum("read").alias("read"))
    for row in sums.toLocalIterator():  # this process holds the rows of one of Spark's partitions at a time
        to = made.sums[row["cluster"], label_of(labels, row["user"], row["client"])]
        to.written += row["written"]
        to.read += row["read"]


def _add_budgets(made: Bill, rows: DataFrame, labels: Mapping[Entity, str]) -> None:
    counted = rows.groupBy("cluster").agg(F.countDistinct("at").alias("parts")).collect()
    parts = {row["cluster"]: row["parts"] for row in counted}
    in_cluster = rows.groupBy("cluster", "budget", "at").agg(F.sum("bytes").alias("bytes"))
    sums = in_cluster.groupBy("cluster", "budget").agg(
        F.sum("bytes").alias("bytes"), F.expr("max_by(bytes, at) AS newest")
    )
    for row in sums.toLocalIterator():
        to = made.sums[row["cluster"], labels.get(Entity(budget=row["budget"]), "")]
        to.byte_hours += row["bytes"] * (PART / _HOUR)
        to.mean += row["bytes"] / parts[row["cluster"]]
        to.newest += row["newest"]


#: The folders of the history, what their rows are added by, and what to do where there is no such folder.
_KINDS: Final = (
    ("usage", USAGE_COLUMNS, _add_clients,
     "bytes in and out: turn on the task publish-usage and set cluster-wide quotas"),
    ("budgets", BUDGETS_COLUMNS, _add_budgets, "bytes stored: set budgets of storage, with budgets=on"),
)  # fmt: skip
