"""What is played: brokers' properties, clients, disks, the way of snapshots, and deaths; and the tests' scenes by seed.

A scene is a frozen value without behaviour, made of the options of ``quotahost simulate disk`` or of a seed. All that
is left to chance comes from the seed, so a seed is all that it takes to see a failure again. Times are in ms from the
start, sizes in bytes, rates in bytes/s.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

from quotahost.model import Limit, LimitType

Kind = Literal["eager", "paced", "bursty", "reconnecting", "flowing"]


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A producer. It writes to one topic, which has its name.

    Attributes:
        kind: ``eager`` sends the next batch as soon as it may. ``paced`` has ``demand`` bytes/s to send and catches up
            after a wait, ``bursty`` has them in lumps, one every ``every`` ms. ``reconnecting`` is an eager one that
            evades mutes by new connections, one every ``every`` ms. ``flowing`` stands for many
            small clients: their bytes flow in at the demand times the share of the quota that the limit leaves, so
            that hours are played in seconds.
        quota, demand: bytes/s; an eager one's demand is as fast as its line is.
        batch: bytes of one request.
        home, replicas: the index of the broker that it writes to, and of the disks that its bytes are copied to.
        changes: from when on a flowing one has another demand, in order of time.
    """

    name: str
    kind: Kind
    quota: float
    batch: int
    demand: float
    every: int = 1000
    home: int = 0
    replicas: tuple[int, ...] = ()
    changes: tuple[tuple[int, float], ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """The indexes of all disks that its bytes come to."""
        return (self.home, *self.replicas)


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """A broker's one volume, and how many of its bytes are used at the start.

    Attributes:
        soft, hard: its own limits, as of ``static.storage.overrides``; None for the broker's.
        drain: bytes/s that retention deletes, in the mean.
        lump: ms between two deletions.
        others: from when on writers without a quota fill it at which rate, in order of time.
        cleanups: when an operator frees how many bytes.
        kept: ms for which what clients write is kept; 0 for a steady drain instead.
    """

    capacity: int
    used: int
    soft: Limit | None = None
    hard: Limit | None = None
    drain: float = 0.0
    lump: int = 1000
    others: tuple[tuple[int, float], ...] = ()
    cleanups: tuple[tuple[int, int], ...] = ()
    kept: int = 0


@dataclass(frozen=True, slots=True)
class WayPlan:
    """How snapshots come to the other brokers.

    Attributes:
        fastest, slowest: ms; each takes its own time for each reader, so that they overtake each other.
        lost: which share never arrives.
        silences: a broker's index, and from when to when all its snapshots are lost.
    """

    fastest: int = 5
    slowest: int = 50
    lost: float = 0.0
    silences: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """The Spark pipeline: ms between two records (``--tick``), and when it dies and when it is back."""

    tick: int = 2000
    deaths: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a run depends on.

    Attributes:
        seed: of what is left to chance while it is played.
        ms: how long it takes.
        properties: the brokers' properties under ``client.quota.callback.``, without that.
        disks: each broker's, so as many as brokers.
        windows, window_ms: ``quota.window.num`` and ``.size.seconds``.
        fence: whether the brokers have one.
        way: of the snapshots, where there are several brokers, and of the pipeline's records.
        pipeline: None for none; then the brokers' factor source is ``snapshots``.
        deaths: a broker's index, when it dies and when it is back.
        hangs: a broker's index, and from when to when its host doesn't answer, as a plugin of it hangs.
        steady: demand and drain stay as they are, so that the factor has to settle.
    """

    seed: int
    ms: int
    properties: tuple[tuple[str, str], ...]
    clients: tuple[ClientPlan, ...]
    disks: tuple[DiskPlan, ...]
    windows: int = 11
    window_ms: int = 1000
    fence: bool = True
    way: WayPlan = WayPlan()
    pipeline: PipelinePlan | None = None
    deaths: tuple[tuple[int, int, int], ...] = ()
    hangs: tuple[tuple[int, int, int], ...] = ()
    steady: bool = False


def consumed(soft: int, hard: int) -> tuple[Limit, Limit]:
    """Limits in bytes consumed."""
    return Limit(LimitType.CONSUMED_BYTES, soft), Limit(LimitType.CONSUMED_BYTES, hard)


# ---- what may happen to operators, each time in another mixture ----

MB: Final = 10**6
POLICIES: Final = ("limits", "setpoint")
_KINDS: Final[tuple[Kind, ...]] = ("eager", "paced", "bursty", "reconnecting")


def scene_of_seed(seed: int) -> Scene:
    """The scene of a seed: one broker, or in every sixth several; every sixteenth is a long and steady one."""
    rnd = random.Random(seed)
    if seed % 16 == 15:
        return _steady(seed, rnd)
    several = seed % 6 == 1
    brokers = rnd.choice([2, 3]) if several else 1
    ms = rnd.randrange(40_000, 60_000) if several else rnd.randrange(40_000, 80_000)
    clients = tuple(_client(rnd, f"c{i}", brokers) for i in range(rnd.choice([1, 2, 3])))
    quotas = sum(client.quota for client in clients)
    band = int(quotas * rnd.choice([4, 10, 25]))
    soft = int(rnd.choice([4, 20]) * band)
    disks = tuple(_disk(rnd, soft, band, quotas, ms) for _ in range(brokers))
    lossy = several and rnd.random() < 0.4
    way = WayPlan(5, rnd.choice([20, 300, 1500]), rnd.choice([0.1, 0.4]) if lossy else 0.0, _silences(rnd, brokers, ms))
    pipeline = _pipeline(rnd, ms) if several else None
    return Scene(
        seed,
        ms,
        _properties(rnd, "cluster-volumes" if pipeline else "snapshots" if several else "local"),
        clients,
        disks,
        rnd.choice([2, 2, 5, 11]),
        fence=rnd.random() < 0.9,
        way=way if several else WayPlan(),
        pipeline=pipeline,
        deaths=_deaths(rnd, brokers, ms),
        hangs=_hangs(rnd, brokers, ms),
    )


def _properties(rnd: random.Random, source: str) -> tuple[tuple[str, str], ...]:
    return (
        ("factor.source", source),
        ("policy", rnd.choice(POLICIES)),
        ("pause.resume.free-share", rnd.choice(["0", "0.1", "0.3"])),
        ("max.mute", rnd.choice(["2s", "10s", "30s"])),
        ("factor.interval", rnd.choice(["250ms", "500ms", "1s"])),
        ("volumes.period", rnd.choice(["250ms", "500ms", "1s"])),
        ("validity", "8s"),
        ("startup.grace", "4s"),
        ("snapshots.period", "3s"),
        ("fallback.action", rnd.choice(["PAUSE", "PAUSE", "OPEN"])),
        ("factor.scope", rnd.choice(["cluster", "topics"])),
    )


def _client(rnd: random.Random, name: str, brokers: int) -> ClientPlan:
    kind = rnd.choice(_KINDS)
    quota = rnd.choice([0.1, 0.5, 2]) * MB
    batch = int(quota / rnd.choice([1, 3, 8]))
    demand = 50.0 * MB if kind in ("eager", "reconnecting") else quota * rnd.choice([0.3, 0.9, 1.5])
    home = rnd.randrange(brokers)
    replicas = tuple(i for i in range(brokers) if i != home and rnd.random() < 0.5)
    return ClientPlan(name, kind, quota, batch, demand, rnd.choice([500, 2000, 5000]), home, replicas)


def _disk(rnd: random.Random, soft: int, band: int, quotas: float, ms: int) -> DiskPlan:
    drain = quotas * rnd.choice([0, 0, 0.3, 0.8, 1.2])
    others = _others(rnd, band, ms) if rnd.random() < 0.3 else ()
    cleanups = tuple(
        sorted((rnd.randrange(ms), int(band * rnd.choice([0.2, 1, 2]))) for _ in range(rnd.choice([0, 1, 2])))
    )
    used = int(soft + band * rnd.uniform(-0.5, 1.1))
    lump = rnd.choice([300, 2000, 10_000])
    return DiskPlan(2 * (soft + band), used, *consumed(soft, soft + band), drain, lump, others, cleanups)


def _others(rnd: random.Random, band: int, ms: int) -> tuple[tuple[int, float], ...]:
    """Something that writes without a quota for a while: a replica that catches up, a reassignment."""
    begin = rnd.randrange(ms)
    return (begin, band / rnd.choice([1, 5, 30])), (begin + rnd.choice([500, 3000, 10_000]), 0.0)


def _silences(rnd: random.Random, brokers: int, ms: int) -> tuple[tuple[int, int, int], ...]:
    if brokers == 1 or rnd.random() < 0.3:
        return ()
    begin = rnd.randrange(ms)
    return ((rnd.randrange(brokers), begin, begin + rnd.choice([2000, 12_000, 30_000])),)


def _deaths(rnd: random.Random, brokers: int, ms: int) -> tuple[tuple[int, int, int], ...]:
    if rnd.random() < (0.7 if brokers > 1 else 0.9):
        return ()
    dies = rnd.randrange(ms)
    return ((rnd.randrange(brokers), dies, dies + rnd.choice([1000, 6000, 20_000])),)


def _pipeline(rnd: random.Random, ms: int) -> PipelinePlan | None:
    """In every second scene with several brokers; it may be down for longer than ``validity``, or all the time."""
    if rnd.random() < 0.5:
        return None
    tick = rnd.choice([500, 2000])
    if rnd.random() < 0.6:
        return PipelinePlan(tick)
    dies = rnd.randrange(ms)
    return PipelinePlan(tick, ((dies, dies + rnd.choice([1000, 6000, 20_000, ms])),))


def _hangs(rnd: random.Random, brokers: int, ms: int) -> tuple[tuple[int, int, int], ...]:
    """Shorter and longer than ``validity``, after which the lease is over."""
    if rnd.random() < 0.9:
        return ()
    begin = rnd.randrange(ms)
    return ((rnd.randrange(brokers), begin, begin + rnd.choice([3000, 12_000, 20_000])),)


def _steady(seed: int, rnd: random.Random) -> Scene:
    """Eager and paced clients above the drain, lumps that are small beside the band; long enough to settle."""
    kinds: tuple[Literal["eager", "paced"], ...] = ("eager", "paced")
    clients = []
    for i in range(rnd.choice([1, 2])):
        kind, quota = rnd.choice(kinds), rnd.choice([0.5, 2]) * MB
        demand = 50.0 * MB if kind == "eager" else quota * rnd.choice([0.9, 1.5])
        clients.append(ClientPlan(f"c{i}", kind, quota, int(quota / 3), demand))
    wanted = sum(min(client.demand, client.quota) for client in clients)
    drain = wanted * rnd.choice([0.3, 0.5, 0.8])
    band, lump = int(wanted * 20), rnd.choice([500, 2000])
    soft = 4 * band
    disk = DiskPlan(2 * (soft + band), int(soft + band * 0.3), *consumed(soft, soft + band), drain, lump)
    return Scene(seed, 180_000, _properties(rnd, "local"), tuple(clients), (disk,), rnd.choice([2, 5]), steady=True)
