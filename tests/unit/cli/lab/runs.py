"""Histories of volumes: of numbers, and of runs of the simulator, kept as the pipeline would, with the factors."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from harness.loop.cluster import EPOCH, BusyDisk, Cluster, ClusterScene
from quotahost.cli.lab.curves import Bucket, Curve, Name, Question, Report
from quotahost.cli.lab.play import Plan
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan
from quotahost.model import Limit, LimitType
from quotahost.model.volumes import byte_limits
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings

MB = 10**6
EVERY = 250  # ms between two looks at the factor


@dataclass(frozen=True)
class Run:
    """A history, and the factor of each broker every EVERY ms."""

    history: Report
    factors: dict[str, list[tuple[float, float]]]


def two_brokers(policy: str, seconds: int = 240, soft: int = 400, hard: int = 500) -> ClusterScene:
    """The disk of the first broker fills to its hard limit (MB), is freed, and fills again."""
    own = {"factor.source": "snapshots", "policy": policy, "volumes.period": "250ms"}
    clients = (
        ClientPlan("a", "eager", 2 * MB, 200_000, 50 * MB, replicas=(1,)),
        ClientPlan("b", "paced", 1 * MB, 100_000, 0.6 * MB),
    )
    limits = Limit(LimitType.CONSUMED_BYTES, soft * MB), Limit(LimitType.CONSUMED_BYTES, hard * MB)
    others, cleanups = ((60_000, 80_000, 4.0 * MB),), ((120_000, 120 * MB),)
    first = BusyDisk(1000 * MB, 380 * MB, *limits, 1.0 * MB, 2000, others=others, cleanups=cleanups)
    second = DiskPlan(1000 * MB, 100 * MB, *limits, drain=0.5 * MB)
    return ClusterScene(7, seconds * 1000, tuple(sorted(own.items())), clients, (first, second), windows=2)


def recorded(scene: ClusterScene) -> Run:
    """Play the scene, and keep what the brokers publish."""
    world = Cluster(scene)
    assert world.topic is not None
    readings: dict[Name, list[Bucket]] = defaultdict(list)
    factors: dict[str, list[tuple[float, float]]] = defaultdict(list)
    publish = world.topic.publish

    def keep(snapshot: Snapshot) -> None:
        publish(snapshot)
        for volume in snapshot.volumes:
            levels = byte_limits(volume, volume.soft, volume.hard)
            assert levels is not None
            used, at = volume.consumed, snapshot.captured_at.timestamp()
            bucket = Bucket(at, used, used, used, volume.capacity, levels.soft, levels.hard)
            readings[Name("c", volume.broker, volume.name)].append(bucket)

    world.topic.publish = keep  # type: ignore[method-assign]

    def look() -> None:
        at = (EPOCH + timedelta(milliseconds=world.events.now)).timestamp()
        for broker in world.brokers:
            factors[str(broker.index + 1)].append((at, broker.factor))
        world.events.after(EVERY, look)

    world.events.at(EVERY, look)
    world.run()
    return Run(report(readings), dict(factors))


def each_minute(
    used: Iterable[int], soft: int | None = None, hard: int | None = None, capacity: int = 1000
) -> list[Bucket]:
    """A reading a minute, from 1970 on."""
    return [Bucket(60.0 * i, bytes, bytes, bytes, capacity, soft, hard) for i, bytes in enumerate(used)]


def report(readings: dict[Name, list[Bucket]]) -> Report:
    """What the history would answer."""
    times = [bucket.at for buckets in readings.values() for bucket in buckets]
    curves = tuple(Curve(name, tuple(readings[name]), None) for name in sorted(readings))
    return Report(Question(""), min(times), max(times), 0.0, len(curves), curves)


def plan(new: Settings, then: Settings | None = None, windows: int = 2) -> Plan:
    """The same settings then and now, if no others are given."""
    return Plan(new, then or new, (windows, 1000))


def at(points: Iterable[tuple[float, ...]], time: float, which: int) -> float:
    """The value in force at a time, of points in order of time."""
    return [point for point in points if point[0] <= time][-1][which]
