"""The same aggregate in plain Python, small enough to be seen right: what ``aggregate`` must equal.

Nothing but tests uses it. It reads records with :mod:`quotahost.wire`, as brokers do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

from quotahost.clusterrecord import ClusterRecord, Filling, OfflineDir
from quotahost.pipeline.clusters import filling
from quotahost.pipeline.rules import MAX_NAME, Rules
from quotahost.policies.bounds import bounds
from quotahost.snapshot import Snapshot
from quotahost.volume import LimitType, Volume
from quotahost.wire import Refused, decode
from quotahost.wire_cluster_read import MAX_LISTED, MAX_WORST

_AHEAD: Final = timedelta(hours=1)


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
    """A snapshot, None for a tombstone, and where in its broker's history it stands."""

    seen: datetime
    offset: int
    snapshot: Snapshot | None


History = Sequence[Sample]  # newest first
Brokers = dict[tuple[str, str], History]


def refusal(record: Record) -> str | None:
    """Why the record is refused, one of ``records.REFUSALS``; None if it counts."""
    if record.key is None:
        return "key"
    if record.value is None:
        return None
    try:
        at = decode(record.key, record.value).taken_at
    except Refused as refused:
        return refused.reason
    return "time" if at > record.timestamp + _AHEAD else None


def state(records: Iterable[Record], samples: int) -> Brokers:
    """By topic and broker the newest samples."""
    brokers: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for record in records:
        if refusal(record) is None:
            brokers[record.topic, (record.key or b"").decode()].append(_sample(record))
    return {
        key: sorted(found, key=lambda sample: (sample.seen, sample.offset), reverse=True)[:samples]
        for key, found in brokers.items()
    }


def _sample(record: Record) -> Sample:
    if record.value is None:
        return Sample(record.timestamp, record.offset, None)
    snapshot = decode(record.key, record.value)
    return Sample(min(snapshot.taken_at, record.timestamp), record.offset, snapshot)


def rollup(brokers: Brokers, rules: Rules, run: int, sequence: int, now: int) -> list[ClusterRecord]:
    """The records of all clusters; ``now`` in ms since the epoch."""
    clusters: dict[str, dict[str, History]] = defaultdict(dict)
    time = datetime.fromtimestamp(now / 1000, UTC)
    for (_, broker), history in brokers.items():
        alive = list(takewhile(lambda sample: sample.snapshot is not None, history))
        if alive and alive[0].seen >= time - rules.expiry:
            assert alive[0].snapshot is not None
            clusters[alive[0].snapshot.cluster or rules.cluster][broker[:MAX_NAME]] = alive
    return [_cluster(name, found, rules, run, sequence, time) for name, found in clusters.items()]


def _cluster(
    name: str, brokers: dict[str, History], rules: Rules, run: int, sequence: int, time: datetime
) -> ClusterRecord:
    fresh = {broker: alive for broker, alive in brokers.items() if alive[0].seen >= time - rules.validity}
    stale = sorted(brokers.keys() - fresh.keys())
    missing = sorted(set(rules.registered) - brokers.keys()) if name == rules.cluster else []
    offline = sorted(
        (broker, directory[:MAX_NAME])
        for broker, alive in fresh.items()
        for directory in (alive[0].snapshot.offline if alive[0].snapshot else ())
    )
    fillings = [each for broker, alive in fresh.items() for each in _fillings(broker, alive)]
    volumes = [each.volume for each in fillings]
    factors = [_factor(volume) for volume in volumes if volume.soft or volume.hard]
    return ClusterRecord(
        name,
        run,
        sequence,
        time,
        max(alive[0].seen for alive in brokers.values()),
        len(fresh),
        len(stale),
        len(missing),
        tuple(stale[:MAX_LISTED]),
        tuple(missing[:MAX_LISTED]),
        len(offline),
        tuple(OfflineDir(*each) for each in offline[:MAX_LISTED]),
        len(volumes),
        sum(volume.capacity for volume in volumes),
        sum(volume.consumed for volume in volumes),
        min(factors, default=None),
        tuple(_fullest(fillings)),
        {kind: tuple(_worst(fillings, kind)) for kind in LimitType},
    )


def _fillings(broker: str, alive: History) -> Iterable[Filling]:
    newest, oldest = alive[0], alive[-1]
    assert newest.snapshot is not None
    assert oldest.snapshot is not None
    before = {volume.name: volume.consumed for volume in oldest.snapshot.volumes}
    passed = (_ms(newest.seen) - _ms(oldest.seen)) / 1000
    for volume in newest.snapshot.volumes:
        known = passed > 0 and volume.name in before
        rate = (float(volume.consumed) - float(before[volume.name])) / passed if known else None
        name, soft, hard = volume.name[:MAX_NAME], volume.soft, volume.hard
        yield filling(Volume(broker, name, volume.capacity, volume.consumed, soft, hard), rate)


def _ms(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _factor(volume: Volume) -> float:
    found = bounds(volume, volume.soft, volume.hard)
    assert found is not None
    return found.ramp(volume.consumed)


def _free_share(volume: Volume) -> float:
    free = float(volume.capacity) - float(volume.consumed)
    return free / float(volume.capacity) if volume.capacity else 0.0


_ORDERS: Final = {
    LimitType.CONSUMED_BYTES: lambda volume: 0,
    LimitType.MIN_FREE_BYTES: lambda volume: volume.capacity - volume.consumed,
    LimitType.MIN_FREE_PERCENTAGE: _free_share,
}


def _worst(fillings: list[Filling], kind: LimitType) -> list[Filling]:
    def order(each: Filling) -> tuple[float, int, str, str]:
        volume = each.volume
        return _ORDERS[kind](volume), -volume.consumed, volume.broker, volume.name

    return sorted(fillings, key=order)[:MAX_WORST]


def _fullest(fillings: list[Filling]) -> list[Filling]:
    kinds: dict[object, Filling] = {}
    for each in sorted(fillings, key=lambda e: (-e.volume.consumed, e.volume.broker, e.volume.name)):
        kinds.setdefault((each.volume.capacity, each.volume.soft, each.volume.hard), each)
    least_share = sorted(
        kinds.values(),
        key=lambda e: (_free_share(e.volume), -e.volume.consumed, e.volume.broker, e.volume.name),
    )
    return least_share[:MAX_LISTED]
