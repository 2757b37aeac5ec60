"""``quotahost quotas usage`` sums the use of a month by the labels of the declared files, for a bill.

1. Spark sums the month of the pipeline's history (``quotahost.pipeline.history``): a row for each client, with the
   bytes that the client wrote and read, and a row for each budget of storage, with the bytes that the budget held.
2. The command adds each row to the label of the most specific entity that has a label. Rows without a label count for
   the label "", shown as ``(no label)``, so that the sums of all labels are the sums of all records.
3. The command counts the hours without records, because a bill must not treat them as hours without use.

Storage is billed by bytes times time: a team that fills a budget on the last day pays for a day. So a budget's bytes
are summed as byte-hours, each recorded part of the time with its mean. Months, days and hours are in UTC.

This process keeps no more than a row for each label and hour, however many clients there are.
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
    """The use of one label in the month: bytes from and to clients; byte-hours, mean and last bytes of budgets."""

    written: float = 0.0
    read: float = 0.0
    byte_hours: float = 0.0
    mean: float = 0.0
    latest: float = 0.0


@dataclass(slots=True)
class Bill:
    """The sums of all that is recorded of a month."""

    since: datetime  # the start of the month
    until: datetime  # the start of the next month
    #: The sums by cluster and label; the label "" stands for use without a label.
    sums: dict[tuple[str, str], Sum] = field(default_factory=lambda: defaultdict(Sum))
    #: The hours that have records, by cluster, as numbers of hours since 1970.
    hours: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: The kinds of records that the history lacks, each with the settings that make brokers write them.
    missing: list[str] = field(default_factory=list)

    @property
    def length(self) -> int:
        return (self.until - self.since) // _HOUR

    @property
    def written_by(self) -> datetime:
        """The time by which the pipeline has written the last minutes: records may be late, files come at intervals."""
        return self.until + LATE + 2 * EVERY


def parse_month(text: str) -> tuple[datetime, datetime]:
    """Return the starts of a month such as 2026-11 and of the next one, in UTC. Raises ValueError if it is no month."""
    try:
        since = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        return since, (since + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError):
        raise ValueError("is not a month; write one like 2026-11") from None


def last_month(now: datetime) -> str:
    """Return the last month that is over, in the form that :func:`parse_month` reads."""
    return f"{now.replace(day=1) - timedelta(days=1):%Y-%m}"


def label_of(labels: Mapping[Entity, str], user: str, client_id: str) -> str:
    """Return the label of a client; "" if the client has none.

    If an entity has no label, a less specific entity's label counts. If both sections of a file have an entity with the
    same names, the label of the cluster-wide quota counts.
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
    """Sum a month of ``history``, the folder that the pipeline writes to; all clusters count if ``clusters`` is empty.

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
        F.sum("bytes").alias("bytes"), F.expr("max_by(bytes, at) AS latest")
    )
    for row in sums.toLocalIterator():
        to = made.sums[row["cluster"], labels.get(Entity(budget=row["budget"]), "")]
        to.byte_hours += row["bytes"] * (PART / _HOUR)
        to.mean += row["bytes"] / parts[row["cluster"]]
        to.latest += row["latest"]


#: Each folder of the history, with its columns, the function that adds its rows, and the remedy if it has no rows.
_KINDS: Final = (
    ("usage", USAGE_COLUMNS, _add_clients,
     "bytes in and out: turn on the task publish-usage and set cluster-wide quotas"),
    ("budgets", BUDGETS_COLUMNS, _add_budgets, "bytes stored: set budgets of storage, with budgets=on"),
)  # fmt: skip
