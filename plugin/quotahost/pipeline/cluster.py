"""From snapshots by ``pipeline/sql/state.sql`` to each broker's state, and by ``pipeline/sql/rollup.sql`` to each
cluster's record.

1. :func:`state` is the one stateful operator of the query: it keeps little of each broker, whatever the topic's length.
2. :func:`rollup` runs on a batch of the state, in Spark's own functions. Of thousands of volumes it makes a few rows,
   one for each :class:`Kind` of volumes. It is short, since Spark plans it anew for each batch.
3. :func:`record` makes the record of these rows; :mod:`quotahost.pipeline.publisher` publishes it.

harness/rollup.py is the same in plain Python.
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
from quotahost.model.volumes import MAX_TOPICS, byte_limits
from quotahost.pipeline.frames import BATCH_TIME, large_of_stranger, sql
from quotahost.records.budgets import MAX_BUDGETS
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST, ClusterRecord, OfflineDir, VolumeTrend
from quotahost.records.fields import MAX_LONG, MS
from quotahost.records.snapshot import budgets as read_budgets

#: Characters of a name in a cluster's record; names are cut there, because the record would become too large. JSON
#: takes up to twelve bytes for each, and there may be some 500 names.
MAX_NAME: Final = 128
#: Of so many volumes of one kind the topics are joined; where more tell theirs, it is all.
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
    # The difference is that of whole numbers.
    free = "if(v.capacity = 0, 0D, double(v.capacity - v.consumed) / nullif(double(v.capacity), 0D))"
    volumes = F.expr(f"""slice(array_sort(transform(s.volumes, v -> struct(
        {free} AS free, struct(left(v.volumeName, {MAX_NAME}) AS volumeName,
        v.capacity, v.consumed, v.softLimit, v.hardLimit, CAST(NULL AS ARRAY<STRING>) AS topics) AS v))),
        1, {MAX_LISTED}).v""")
    offline = F.expr(f"slice(transform(s.offlineLogDirs, d -> left(d, {MAX_NAME})), 1, {MAX_LISTED})")
    cut = F.col("s").withField("volumes", volumes).withField("offlineLogDirs", offline)
    cut = cut.withField("budgets", F.lit(None).cast("STRING"))
    return good.withColumn("s", F.when(large_of_stranger(topic, "broker", listed), cut).otherwise(F.col("s")))


# ---- one row for each kind of volumes --------------------------------------------------------------


_Row = tuple[int, str, str, float | None]  # what a volume consumes, below 0; its broker, name and fill rate


class Kind(NamedTuple):
    """A row of :func:`rollup`: what brokers of a cluster tell of their volumes of one capacity with the same limits.

    Brokers without volumes are of a kind without a capacity; what ``expired`` brokers had last is of kinds of its own.
    """

    cluster: str
    at: int  # when the batch began, by Kafka's clock, in ms since 1970
    capacity: int | None
    soft: tuple[str, int] | None  # a limit's type and level
    hard: tuple[str, int] | None
    expired: bool
    reporting: list[str]  # brokers with a fresh snapshot
    stale: list[str]  # brokers without one that are not expired
    offline: list[tuple[str, list[str]]]  # reporting brokers with their log directories that are offline
    budgets: list[tuple[str, bool, str]]  # for :func:`used_budgets`
    newest: int | None  # when the newest snapshot was captured, in ms since 1970; None of expired brokers
    volumes: int  # how many volumes reporting brokers have
    used_high: int  # what these consume, in units of 2 GiB, and the rest in bytes
    used_low: int
    fullest: list[_Row]  # of reporting brokers the MAX_WORST volumes that consume most, the fullest first
    silent: list[_Row]  # the same of the others
    untold: int | None  # the most that a volume consumes whose broker doesn't tell its topics
    tellers: int  # how many volumes have topics, and of MAX_TELLERS of them the bytes consumed and the topics, in JSON
    told: list[tuple[int, str]]

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
    """The kinds of volumes of a batch of :func:`state`, as :func:`by_cluster` reads them.

    Kafka's clock is so many ms ``ahead`` of the driver's.
    """
    arguments = {
        "cluster": rules.cluster,
        "ahead": ahead,
        "validity": rules.validity // MS,
        "expiry": rules.expiry // MS,
        "topics": json.dumps(sorted(rules.topics)),
    }
    text = sql("rollup", worst=MAX_WORST, tellers=MAX_TELLERS)
    # The state has one partition. Spark learns that by coalesce, and doesn't shuffle the rows again.
    # A text with parameters takes less than half the time of the same query built from Column objects.
    return volumes.sparkSession.sql(text, args=arguments, state=volumes.coalesce(1))


def by_cluster(rows: Iterable[Row]) -> dict[str, list[Kind]]:
    """The kinds of each cluster of which a broker is known that has not expired."""
    clusters: dict[str, list[Kind]] = defaultdict(list)
    for row in rows:
        clusters[row["cluster"]].append(Kind(**row.asDict()))
    return {name: kinds for name, kinds in clusters.items() if any(kind.newest is not None for kind in kinds)}


# ---- the record of a cluster -----------------------------------------------------------------------


def record(cluster: str, kinds: Sequence[Kind], rules: Rules, run: int, sequence: int) -> ClusterRecord:
    """The record of one cluster, by these rules; ``sequence`` is its number in the run."""
    # Only of the own cluster it is known which brokers are in service, but while it has not answered.
    registered = frozenset(rules.registered if cluster == rules.cluster else ())
    reporting = {broker for kind in kinds for broker in kind.reporting}
    # Stale brokers are known, so no broker counts as stale and as missing.
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
    factor = min(map(_factor, listed), default=2.0)  # no kind that is left out has a smaller one
    budgets = used_budgets((told for kind in kinds for told in kind.budgets), registered)
    newest = max(kind.newest for kind in kinds if kind.newest is not None)
    return ClusterRecord(
        cluster, run, sequence, _time(kinds[0].at), _time(newest),
        len(serving), len(stale), len(missing),
        # The first ids only: a record of 10,000 silent brokers must stay small. Those in service come first.
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
    """As the policy ``limits`` finds it, 2 without limits; a volume of the same kind that consumes less has no smaller
    one.
    """
    volume = trend.volume
    limits = byte_limits(volume, volume.soft, volume.hard)
    return limits.ramp(volume.consumed) if limits else 2.0


# Names are the last criterion, so that a batch that is done again lists the same volumes.
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
    """Half of the list: the smallest factors. The other half: the least free share, and first those that lack a limit,
    which brokers judge by their own.
    """
    by_factor = sorted(trends, key=lambda trend: (_factor(trend), _least_free(trend)))
    half = MAX_LISTED // 2
    rest = sorted(
        by_factor[half:], key=lambda trend: (bool(trend.volume.soft and trend.volume.hard), _least_free(trend))
    )
    return tuple(sorted([*by_factor[:half], *rest[:half]], key=_least_free))


def _silent(kinds: Iterable[Kind]) -> tuple[VolumeTrend, ...]:
    """What silent brokers had last: of each kind the fullest, then of each kind the next; expired brokers come last.

    Only readers know whether such a broker is fenced, so that this still counts.
    """
    placed = []
    for kind in kinds:
        if trends := kind.trends(kind.silent):
            factor = _factor(trends[0])
            placed += [((kind.expired, n, factor, _least_free(trend)), trend) for n, trend in enumerate(trends)]
    return tuple(trend for _, trend in sorted(placed, key=itemgetter(0))[:MAX_LISTED])


def _affected(kinds: Iterable[Kind]) -> frozenset[str] | None:
    """The topics on volumes above their published soft limits; None for all."""
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
