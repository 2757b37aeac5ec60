"""The pipeline's roll-up of snapshots in plain Python, small enough to check by reading.

Tests compare ``quotahost.pipeline.cluster`` and its SQL with this module; scenes of ``harness.loop`` and broker tests
use it in place of Spark. It reads records with :mod:`quotahost.records.codec`, as brokers do.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from quotahost.model import LimitType, Volume
from quotahost.model.volumes import MAX_TOPICS, ByteLimits, byte_limits
from quotahost.pipeline.cluster import MAX_NAME, Rules
from quotahost.records.cluster_volumes import MAX_LISTED, MAX_WORST, ClusterRecord, OfflineDir, VolumeTrend
from quotahost.records.codec import Refused
from quotahost.records.fields import MAX_NAME as NAME_BYTES
from quotahost.records.fields import delay_ms
from quotahost.records.snapshot import Snapshot, decode

_MS: Final = timedelta(milliseconds=1)
_OLDEST: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the snapshots topic; ``timestamp`` is Kafka's."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Sample:
    """A snapshot (None for a tombstone), and its time and offset in the history of its broker."""

    seen: datetime
    offset: int
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Known:
    """The latest snapshot of a broker, and the snapshot that its fill rates look back to."""

    latest: Sample
    past: Sample | None


Brokers = dict[tuple[str, str], Known]


def refusal(record: Record, clusters: Mapping[str, str] | None = None) -> str | None:
    """Returns why the record is refused; None if it is taken. ``clusters`` is by topic."""
    if record.key is None:
        return "key"
    if record.value is None:
        return None if _is_name(record.key) else "key"
    try:
        snapshot = decode(record.key, record.value)
    except Refused as refused:
        return refused.reason
    if record.timestamp < _OLDEST:
        return "time"
    own = (clusters or {}).get(record.topic)
    return "cluster" if own and snapshot.cluster not in ("", own) else None


def _is_name(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return len(key) <= NAME_BYTES


def state(records: Iterable[Record], window: timedelta, validity: timedelta = timedelta(minutes=1)) -> Brokers:
    """Returns the known snapshots by topic and broker, without the brokers that a tombstone removed."""
    brokers: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for record in records:
        if refusal(record) is None:
            brokers[record.topic, (record.key or b"").decode()].append(_sample(record, validity))
    known = {key: _known(samples, window) for key, samples in brokers.items()}
    return {key: found for key, found in known.items() if found.latest.snapshot is not None}


def _known(samples: Sequence[Sample], window: timedelta) -> Known:
    """Returns a broker's snapshots. One before a tombstone is no past, since a returning broker begins anew."""
    gone = max((each.seen for each in samples if each.snapshot is None), default=None)
    past = min(_firsts(samples, window), key=lambda each: each.seen, default=None)
    alive = past is not None and (gone is None or gone < past.seen)
    return Known(max(samples, key=_order), past if alive else None)


def _order(sample: Sample) -> tuple[datetime, int]:
    return sample.seen, sample.offset


def _firsts(samples: Iterable[Sample], window: timedelta) -> Iterable[Sample]:
    """Returns the first snapshot of the last even period (``window`` long) that has one, and of the last odd period."""
    periods: dict[int, list[Sample]] = defaultdict(list)
    for each in samples:
        if each.snapshot is not None:
            periods[_ms(each.seen) // (window // timedelta(milliseconds=1))].append(each)
    for parity in (0, 1):
        alike = [period for period in periods if period % 2 == parity]
        if alike:
            yield min(periods[max(alike)], key=_order)


def _sample(record: Record, validity: timedelta) -> Sample:
    if record.value is None:
        return Sample(record.timestamp, record.offset, None)
    snapshot = decode(record.key, record.value)
    delay = delay_ms(snapshot.age_ms, snapshot.captured_at, _ms(record.timestamp), validity // _MS)
    return Sample(record.timestamp - delay * _MS, record.offset, snapshot)


def rollup(brokers: Brokers, rules: Rules, run: int, sequence: int, now: int) -> list[ClusterRecord]:
    """Returns the records of all clusters; ``now`` is in ms since the epoch."""
    clusters: dict[str, dict[str, Known]] = defaultdict(dict)
    time = datetime.fromtimestamp(now / 1000, UTC)
    for (_, broker), known in brokers.items():
        assert known.latest.snapshot is not None
        clusters[known.latest.snapshot.cluster or rules.cluster][broker[:MAX_NAME]] = known
    return [
        _cluster(name, found, rules, run, sequence, time)
        for name, found in clusters.items()
        if any(known.latest.seen >= time - rules.expiry for known in found.values())
    ]


def _cluster(
    name: str, every: dict[str, Known], rules: Rules, run: int, sequence: int, time: datetime
) -> ClusterRecord:
    brokers = {broker: known for broker, known in every.items() if known.latest.seen >= time - rules.expiry}
    expired = {broker: known for broker, known in every.items() if broker not in brokers}
    fresh = {broker: known for broker, known in brokers.items() if known.latest.seen >= time - rules.validity}
    running = set(rules.registered) if name == rules.cluster and rules.registered else None
    silent = {broker: known for broker, known in brokers.items() if broker not in fresh}
    stale = sorted(silent, key=lambda broker: (running is not None and broker not in running, broker))
    reporting = [broker for broker in fresh if running is None or broker in running]
    missing = sorted(set(rules.registered) - brokers.keys()) if name == rules.cluster else []
    offline = sorted(
        (broker, directory[:MAX_NAME])
        for broker in reporting
        for known in [fresh[broker]]
        for directory in (known.latest.snapshot.offline if known.latest.snapshot else ())
    )
    trends = [each for broker, known in fresh.items() for each in _trends(broker, known)]
    volumes = [each.volume for each in trends]
    factors = [_ramp(volume).ramp(volume.consumed) for volume in volumes if volume.soft or volume.hard]
    kinds = [kind[0] for kind in _kinds(trends)]
    return ClusterRecord(
        name, run, sequence, time, max(known.latest.seen for known in brokers.values()),
        len(reporting), len(stale), len(missing), tuple(stale[:MAX_LISTED]), tuple(missing[:MAX_LISTED]),
        len(offline), tuple(OfflineDir(*each) for each in offline[:MAX_LISTED]),
        len(volumes), sum(volume.capacity for volume in volumes), sum(volume.consumed for volume in volumes),
        min(factors, default=None), tuple(_fullest(kinds)), tuple([*_last(silent), *_last(expired)][:MAX_LISTED]),
        {kind: tuple(_worst(trends, kind)) for kind in LimitType}, len(kinds),
        _affected([each.volume for broker, known in every.items() for each in _trends(broker, known)]),
        _budgets(brokers, fresh.keys() if running is None else running),
    )  # fmt: skip


def _budgets(brokers: dict[str, Known], serving: Collection[str]) -> tuple[tuple[str, int, int], ...]:
    """Returns the usage of each budget by brokers in service and by others; SQL's own test covers MAX_BUDGETS."""
    told = [
        (broker in serving, *budget)
        for broker, known in brokers.items()
        for budget in (known.latest.snapshot and known.latest.snapshot.budgets) or ()
    ]

    def used(budget: str, by_serving: bool) -> int:
        return sum(used for serves, name, used in told if (name, serves) == (budget, by_serving))

    return tuple((name, used(name, True), used(name, False)) for name in sorted({name for _, name, _ in told}))


def _affected(volumes: list[Volume]) -> frozenset[str] | None:
    """Returns topics on volumes above published soft limits; SQL's own test covers ``aggregate.MAX_TELLERS``."""
    limited = ((volume, byte_limits(volume, volume.soft, volume.hard)) for volume in volumes)
    told = [volume.topics for volume, found in limited if found and found.breaches_soft(volume.consumed)]
    union = frozenset(topic for topics in told for topic in topics or ())
    return None if None in told or len(union) > MAX_TOPICS else union


def _trends(broker: str, known: Known) -> Iterable[VolumeTrend]:
    latest, past = known.latest, known.past
    assert latest.snapshot is not None
    before = {each.name: each.consumed for each in past.snapshot.volumes} if past and past.snapshot else {}
    passed = (latest.seen - past.seen) / timedelta(seconds=1) if past else 0.0
    for volume in latest.snapshot.volumes:
        rates_known = passed > 0 and volume.name in before
        rate = float(volume.consumed - before[volume.name]) / passed if rates_known else None
        name, soft, hard = volume.name[:MAX_NAME], volume.soft, volume.hard
        listed = Volume(broker, name, volume.capacity, volume.consumed, soft, hard, volume.topics)
        yield VolumeTrend(listed, rate, listed.free / rate if rate is not None and rate > 0 else None)


def _ms(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // _MS


def _ramp(volume: Volume) -> ByteLimits:
    found = byte_limits(volume, volume.soft, volume.hard)
    assert found is not None
    return found


def _factor(volume: Volume) -> float:
    """Returns the volume's factor; 2 if it has no limits."""
    return _ramp(volume).ramp(volume.consumed) if volume.soft or volume.hard else 2.0


def _free_share(volume: Volume) -> float:
    return (volume.capacity - volume.consumed) / volume.capacity if volume.capacity else 0.0


_ORDERS: Final = {
    LimitType.CONSUMED_BYTES: lambda volume: 0,
    LimitType.MIN_FREE_BYTES: lambda volume: volume.capacity - volume.consumed,
    LimitType.MIN_FREE_PERCENTAGE: _free_share,
}


def _worst(trends: list[VolumeTrend], kind: LimitType) -> list[VolumeTrend]:
    def order(each: VolumeTrend) -> tuple[float, int, str, str]:
        volume = each.volume
        return _ORDERS[kind](volume), -volume.consumed, volume.broker, volume.name

    return sorted(trends, key=order)[:MAX_WORST]


def _kinds(trends: Iterable[VolumeTrend]) -> list[list[VolumeTrend]]:
    """Returns the volumes of each kind, the fullest first."""
    kinds: dict[object, list[VolumeTrend]] = defaultdict(list)
    for each in sorted(trends, key=lambda e: (-e.volume.consumed, e.volume.broker, e.volume.name)):
        kinds[each.volume.capacity, each.volume.soft, each.volume.hard].append(each)
    return list(kinds.values())


def _fullest(kinds: list[VolumeTrend]) -> list[VolumeTrend]:
    """Returns half of them by the factor, and half by the free share, of which those that lack a limit come first."""

    def share(each: VolumeTrend) -> tuple[float, int, str, str]:
        return _free_share(each.volume), -each.volume.consumed, each.volume.broker, each.volume.name

    by_factor = sorted(kinds, key=lambda each: (_factor(each.volume), share(each)))
    first, rest = by_factor[: MAX_LISTED // 2], by_factor[MAX_LISTED // 2 :]
    rest.sort(key=lambda each: (bool(each.volume.soft and each.volume.hard), share(each)))
    return sorted([*first, *rest[: MAX_LISTED // 2]], key=share)


def _last(brokers: dict[str, Known]) -> list[VolumeTrend]:
    """Returns the fullest volume of each kind, then the next of each kind; at most MAX_WORST of a kind."""
    kinds = _kinds(each for broker, known in brokers.items() for each in _trends(broker, known))
    placed = [(place, kind[0], each) for kind in kinds for place, each in enumerate(kind[:MAX_WORST])]

    def order(of: tuple[int, VolumeTrend, VolumeTrend]) -> tuple[int, float, float, int, str, str]:
        place, fullest, volume = of[0], of[1].volume, of[2].volume
        return place, _factor(fullest), _free_share(volume), -volume.consumed, volume.broker, volume.name

    return [each for _, _, each in sorted(placed, key=order)]
