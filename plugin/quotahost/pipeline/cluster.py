"""The query ``volumes`` keeps each broker's state (``pipeline/sql/state.sql``), and computes clusters' records from it.

1. :func:`state` is the one stateful operator of the query: it keeps little of each broker, however long the topic is.
2. :func:`rollup` runs on each batch of the state, with Spark's own functions. It reduces thousands of volumes to a few
   rows, one for each :class:`Kind` of volumes. ``sql/rollup.sql`` is short, because Spark plans it for each batch.
3. :func:`record` makes the record of these rows; :mod:`quotahost.pipeline.publisher` publishes it.

harness/rollup.py does the same in plain Python.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from quotahost.model import Limit, LimitType, Volume
from quotahost.model.budgets import by_service
from quotahost.model.volumes import MAX_TOPICS, byte_limits
from quotahost.pipeline.frames import BATCH_TIME, large_of_stranger, sql
from quotahost.records.budgets import MAX_BUDGETS
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST, ClusterRecord, OfflineDir, VolumeTrend
from quotahost.records.fields import MAX_LONG, MS
from quotahost.records.snapshot import budgets as read_budgets

#: The most characters of a name in a cluster's record. Longer names are cut, because the record would grow too large:
#: JSON takes up to twelve bytes for a character, and there may be some 500 names.
MAX_NAME: Final = 128
#: Topics of up to this many volumes of a kind are joined; if more volumes have topics, all topics count as affected.
MAX_TELLERS: Final = 256


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that make a broker reporting, stale, missing or forgotten."""

    cluster: str  # the cluster of ``registered``
    validity: timedelta = timedelta(minutes=1)  # a broker is stale if its latest snapshot is older
    #: A stale broker is listed for this long. Later the record still lists its last volumes, after all others.
    expiry: timedelta = timedelta(days=1)
    #: The ids of the brokers in service, as the cluster lists them; brokers without a snapshot are missing. Empty until
    #: the cluster has answered.
    registered: Collection[str] = ()


# ---- state -----------------------------------------------------------------------------------------


def state(good: DataFrame, window: timedelta) -> DataFrame:
    """Return the latest snapshot of each broker and its fill rates, from the good rows of ``snapshots.parse``.

    Late snapshots, duplicates and the order of arrival don't change the result. A fill rate looks back for at least one
    ``window`` and at most two, while the broker keeps reporting; the state keeps two earlier snapshots for it.

    Returns:
        A row for each volume; a row without a volume for a broker that has none; no row for a removed broker. Columns:
        broker, cluster, seen, ``first`` (true in one row of each broker), offline (log
        directories, in that row), volumeName, capacity, consumed, topics (null: all), softType, softLevel, hardType,
        hardLevel (the volume's own limit, else its broker's), ``budgets`` (JSON, in the first row), ``fillRate``
        (bytes/s, null while unknown), topic, and ``now``, the time of the batch.
    """
    return good.sparkSession.sql(sql("state", window=window // MS, max_name=MAX_NAME, now=BATCH_TIME), good=good)


def cut_strangers(good: DataFrame, own: str, listed: Collection[str]) -> DataFrame:
    """Return the good rows; large snapshots of the cluster ``own`` are cut if it doesn't list their broker.

    Either another client invented that broker, or the broker is down and its full disk still counts. So the MAX_LISTED
    volumes with the least free shares stay, without topics, which stands for all topics, and without budgets.
    """
    # The whole numbers are subtracted first, because a DOUBLE may round them.
    free = "if(v.capacity = 0, 0D, double(v.capacity - v.consumed) / nullif(double(v.capacity), 0D))"
    volumes = F.expr(f"""slice(array_sort(transform(s.volumes, v -> struct(
        {free} AS free, struct(left(v.volumeName, {MAX_NAME}) AS volumeName,
        v.capacity, v.consumed, v.softLimit, v.hardLimit, CAST(NULL AS ARRAY<STRING>) AS topics) AS v))),
        1, {MAX_LISTED}).v""")
    offline = F.expr(f"slice(transform(s.offlineLogDirs, d -> left(d, {MAX_NAME})), 1, {MAX_LISTED})")
    cut = F.col("s").withField("volumes", volumes).withField("offlineLogDirs", offline)
    cut = cut.withField("budgets", F.lit(None).cast("STRING"))
    strangers = (F.col("cluster") == own) & large_of_stranger("broker", listed)
    return good.withColumn("s", F.when(strangers, cut).otherwise(F.col("s")))


# ---- one row for each kind of volumes --------------------------------------------------------------


_Row = tuple[int, str, str, float | None]  # a volume's negated consumption, its broker, name and fill rate


class Kind(NamedTuple):
    """A row of :func:`rollup`: the volumes of a cluster with the same capacity and the same limits.

    Brokers without volumes form a kind without a capacity; the last volumes of expired brokers form kinds of their own.
    """

    cluster: str
    at: int  # when the batch began, by Kafka's clock, in ms since 1970
    capacity: int | None
    soft: tuple[str, int] | None  # a limit's type and level
    hard: tuple[str, int] | None
    expired: bool
    reporting: list[str]  # brokers with a fresh snapshot
    stale: list[str]  # brokers without a fresh snapshot that are not expired
    offline: list[tuple[str, list[str]]]  # reporting brokers with their offline log directories
    budgets: list[tuple[str, bool, str]]  # for :func:`used_budgets`
    latest: int | None  # the time of the latest snapshot, in ms since 1970; None for expired brokers
    volumes: int  # the number of volumes of reporting brokers
    used_high: int  # the bytes that these volumes consume are used_high times 2 GiB, plus used_low
    used_low: int
    fullest: list[_Row]  # the MAX_WORST volumes of reporting brokers that consume most, the fullest first
    silent: list[_Row]  # the same for the other brokers
    untold: int | None  # the largest consumption of a volume whose broker reports no topics for it
    tellers: int  # the number of volumes with topics
    told: list[tuple[int, str]]  # consumed bytes and topics, in JSON, of MAX_TELLERS of these volumes

    def trends(self, rows: list[_Row]) -> list[VolumeTrend]:
        soft, hard = self.limits()
        return [
            _trend(Volume(broker, name[:MAX_NAME], self.capacity or 0, -negated, soft, hard), rate)
            for negated, broker, name, rate in rows
        ]

    def limits(self) -> tuple[Limit | None, Limit | None]:
        soft, hard = (limit and Limit(LimitType(limit[0]), limit[1]) for limit in (self.soft, self.hard))
        return soft, hard


def _trend(volume: Volume, rate: float | None) -> VolumeTrend:
    return VolumeTrend(volume, rate, volume.free / rate if rate is not None and rate > 0 else None)


def rollup(volumes: DataFrame, rules: Rules, ahead: int = 0) -> DataFrame:
    """Return the kinds of volumes of a batch of :func:`state`, as :func:`by_cluster` reads them.

    ``ahead`` is the ms by which Kafka's clock is ahead of the driver's clock.
    """
    arguments = {"ahead": ahead, "validity": rules.validity // MS, "expiry": rules.expiry // MS}
    text = sql("rollup", worst=MAX_WORST, tellers=MAX_TELLERS)
    # The state has one partition. coalesce tells Spark so, and Spark doesn't shuffle the rows again.
    # SQL text with parameters takes less than half the time of the same query built from Column objects.
    return volumes.sparkSession.sql(text, args=arguments, state=volumes.coalesce(1))


def by_cluster(rows: Iterable[Row]) -> dict[str, list[Kind]]:
    """Return the kinds of each cluster that has at least one broker that has not expired."""
    clusters: dict[str, list[Kind]] = defaultdict(list)
    for row in rows:
        clusters[row["cluster"]].append(Kind(**row.asDict()))
    return {name: kinds for name, kinds in clusters.items() if any(kind.latest is not None for kind in kinds)}


# ---- the record of a cluster -----------------------------------------------------------------------


def record(cluster: str, kinds: Sequence[Kind], rules: Rules, run: int, sequence: int) -> ClusterRecord:
    """Return the record of one cluster, by these rules; ``sequence`` is the record's number in the run."""
    # The brokers in service are known for the own cluster only, and only after it has answered.
    registered = frozenset(rules.registered if cluster == rules.cluster else ())
    reporting = {broker for kind in kinds for broker in kind.reporting}
    # A stale broker has sent snapshots, so it isn't also missing.
    stale = {broker for kind in kinds for broker in kind.stale}
    missing = sorted(registered - reporting - stale)
    serving = reporting & registered if registered else reporting
    offline = sorted(
        (broker, directory[:MAX_NAME])
        for kind in kinds
        for broker, directories in kind.offline
        if broker in serving
        for directory in directories
    )
    fresh = [kind.trends(kind.fullest) for kind in kinds if kind.fullest]
    trends = [trend for of_kind in fresh for trend in of_kind]
    fullest = [of_kind[0] for of_kind in fresh]
    listed = _fullest(fullest)
    factor = min(map(_factor, listed), default=2.0)  # no kind that is left out has a smaller factor
    budgets = used_budgets((told for kind in kinds for told in kind.budgets), registered)
    latest = max(kind.latest for kind in kinds if kind.latest is not None)
    return ClusterRecord(
        cluster, run, sequence, _time(kinds[0].at), _time(latest),
        len(serving), len(stale), len(missing),
        # A record of 10,000 silent brokers must stay small, so it has the first ids only, brokers in service first.
        tuple(sorted(stale, key=lambda broker: (bool(registered) and broker not in registered, broker))[:MAX_LISTED]),
        tuple(missing[:MAX_LISTED]),
        len(offline), tuple(OfflineDir(*each) for each in offline[:MAX_LISTED]),
        sum(kind.volumes for kind in kinds),
        sum((kind.capacity or 0) * kind.volumes for kind in kinds),
        sum((kind.used_high << 31) + kind.used_low for kind in kinds),
        factor if factor <= 1 else None, listed, _silent(kinds),
        {kind: tuple(sorted(trends, key=order)[:MAX_WORST]) for kind, order in _WORST.items()},
        len(fullest), _affected(kinds), budgets,
    )  # fmt: skip


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + ms * MS


def _factor(trend: VolumeTrend) -> float:
    """Return the factor by the policy ``limits``, 2 without limits; emptier volumes of a kind have no smaller one."""
    volume = trend.volume
    limits = byte_limits(volume, volume.soft, volume.hard)
    return limits.ramp(volume.consumed) if limits else 2.0


# Names are the last sort criterion, so that a repeated batch lists the same volumes.
def _most(trend: VolumeTrend) -> tuple[int, str, str]:
    return -trend.volume.consumed, trend.volume.broker, trend.volume.name


def _least_free(trend: VolumeTrend) -> tuple[float, tuple[int, str, str]]:
    volume = trend.volume
    share = (volume.capacity - volume.consumed) / volume.capacity if volume.capacity else 0.0
    return share, _most(trend)


_WORST: Final[dict[LimitType, Callable[[VolumeTrend], Any]]] = {
    LimitType.CONSUMED_BYTES: _most,
    LimitType.MIN_FREE_BYTES: lambda trend: (trend.volume.capacity - trend.volume.consumed, _most(trend)),
    LimitType.MIN_FREE_PERCENTAGE: _least_free,
}


def _fullest(trends: Iterable[VolumeTrend]) -> tuple[VolumeTrend, ...]:
    """Return the volumes to list: half have the smallest factors, half the least free shares.

    In the second half volumes that lack a limit come first, because brokers judge these by their own limits.
    """
    by_factor = sorted(trends, key=lambda trend: (_factor(trend), _least_free(trend)))
    half = MAX_LISTED // 2
    rest = sorted(
        by_factor[half:], key=lambda trend: (bool(trend.volume.soft and trend.volume.hard), _least_free(trend))
    )
    return tuple(sorted([*by_factor[:half], *rest[:half]], key=_least_free))


def _silent(kinds: Iterable[Kind]) -> tuple[VolumeTrend, ...]:
    """Return silent brokers' last volumes: each kind's fullest, then each kind's second, etc.; expired brokers last.

    The volumes of a fenced broker still count, and only readers know whether a silent broker is fenced.
    """
    placed = []
    for kind in kinds:
        if trends := kind.trends(kind.silent):
            factor = _factor(trends[0])
            placed += [((kind.expired, n, factor, _least_free(trend)), trend) for n, trend in enumerate(trends)]
    return tuple(trend for _, trend in sorted(placed, key=itemgetter(0))[:MAX_LISTED])


def _affected(kinds: Iterable[Kind]) -> frozenset[str] | None:
    """Return the topics on volumes above their published soft limits; None for all topics."""
    topics = set[str]()
    for kind in kinds:
        limits = byte_limits(Volume("", "", kind.capacity or 0, 0), *kind.limits())
        if limits is None:
            continue
        if kind.tellers > MAX_TELLERS or (kind.untold is not None and limits.breaches_soft(kind.untold)):
            return None
        for consumed, told in kind.told:
            if limits.breaches_soft(consumed):
                topics.update(json.loads(told))
    return None if len(topics) > MAX_TOPICS else frozenset(topics)


def used_budgets(brokers: Iterable[Any], running: Collection[str]) -> tuple[tuple[str, int, int], ...]:
    """Add up the budgets of storage in ``brokers`` (id, whether the snapshot is fresh, JSON of the budgets).

    ``running`` has the ids of the brokers in service; if it is empty, brokers with a fresh snapshot count as such.
    """
    running = frozenset(running)
    told = ((read_budgets(text), broker in running if running else bool(fresh)) for broker, fresh, text in brokers)
    most = sorted(by_service(told).items(), key=lambda budget: (-budget[1][0], budget[0]))[:MAX_BUDGETS]
    # Another client may claim any number of bytes, and no record can be made with a number that is out of range.
    return tuple((name, min(serving, MAX_LONG), min(others, MAX_LONG)) for name, (serving, others) in sorted(most))
