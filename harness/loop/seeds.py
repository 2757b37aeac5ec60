"""The tests' scenes by seed: events that may happen to operators, in a different mixture each time.

All chance comes from the seed, so the seed is enough to reproduce a failure.
"""

import random
from typing import Final, Literal

from harness.loop.cluster import BusyDisk, ClusterScene, PipelinePlan, Reconnecting, WayPlan
from harness.plugin import prefixed
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan, Kind
from quotahost.settings.broker import Settings

MB: Final = 10**6
POLICIES: Final = ("limits", "setpoint")
_FORMS: Final[tuple[tuple[type[ClientPlan], Kind], ...]] = (
    (ClientPlan, "eager"), (ClientPlan, "paced"), (ClientPlan, "bursty"), (Reconnecting, "eager"),
)  # fmt: skip


def scene_of_seed(seed: int) -> ClusterScene:
    """Returns the scene of a seed: one broker, in every sixth scene several; every sixteenth is long and steady."""
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
    return ClusterScene(
        seed,
        ms,
        _settings(rnd, "cluster-volumes" if pipeline else "snapshots" if several else "local", soft, band),
        clients,
        disks,
        rnd.choice([2, 2, 5, 11]),
        fence=rnd.random() < 0.9,
        way=way if several else WayPlan(),
        pipeline=pipeline,
        deaths=_deaths(rnd, brokers, ms),
        hangs=_hangs(rnd, brokers, ms),
    )


def _settings(rnd: random.Random, source: str, soft: int, band: int) -> Settings:
    own = {
        "static.storage.soft": str(soft),
        "static.storage.hard": str(soft + band),
        "factor.source": source,
        "policy": rnd.choice(POLICIES),
        "pause.resume.free-share": rnd.choice(["0", "0.1", "0.3"]),
        "max.mute": rnd.choice(["2s", "10s", "30s"]),
        "factor.interval": rnd.choice(["250ms", "500ms", "1s"]),
        "volumes.period": rnd.choice(["250ms", "500ms", "1s"]),
        "validity": "8s",
        "startup.grace": "4s",
        "snapshots.period": "3s",
        "fallback.action": rnd.choice(["PAUSE", "PAUSE", "OPEN"]),
        "factor.scope": rnd.choice(["cluster", "topics"]),
    }
    return Settings.from_properties(prefixed(own))


def _client(rnd: random.Random, name: str, brokers: int) -> ClientPlan:
    form, kind = rnd.choice(_FORMS)
    quota = rnd.choice([0.1, 0.5, 2]) * MB
    batch = int(quota / rnd.choice([1, 3, 8]))
    demand = 50.0 * MB if kind == "eager" else quota * rnd.choice([0.3, 0.9, 1.5])
    home = rnd.randrange(brokers)
    replicas = tuple(i for i in range(brokers) if i != home and rnd.random() < 0.5)
    return form(name, kind, quota, batch, demand, rnd.choice([500, 2000, 5000]), home, replicas)


def _disk(rnd: random.Random, soft: int, band: int, quotas: float, ms: int) -> BusyDisk:
    drain = quotas * rnd.choice([0, 0, 0.3, 0.8, 1.2])
    others = _others(rnd, band, ms) if rnd.random() < 0.3 else ()
    cleanups = tuple(
        sorted((rnd.randrange(ms), int(band * rnd.choice([0.2, 1, 2]))) for _ in range(rnd.choice([0, 1, 2])))
    )
    used = int(soft + band * rnd.uniform(-0.5, 1.1))
    lump = rnd.choice([300, 2000, 10_000])
    return BusyDisk(2 * (soft + band), used, drain, lump, others=others, cleanups=cleanups)


def _others(rnd: random.Random, band: int, ms: int) -> tuple[tuple[int, int, float], ...]:
    """Returns periods of a writer without a quota, such as a replica that catches up or a reassignment."""
    begin, rate = rnd.randrange(ms), band / rnd.choice([1, 5, 30])
    return ((begin, begin + rnd.choice([500, 3000, 10_000]), rate),)


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
    """Returns a pipeline in every second scene with several brokers; it may be down beyond ``validity``, or always."""
    if rnd.random() < 0.5:
        return None
    tick = rnd.choice([500, 2000])
    if rnd.random() < 0.6:
        return PipelinePlan(tick)
    dies = rnd.randrange(ms)
    return PipelinePlan(tick, ((dies, dies + rnd.choice([1000, 6000, 20_000, ms])),))


def _hangs(rnd: random.Random, brokers: int, ms: int) -> tuple[tuple[int, int, int], ...]:
    """Returns hangs shorter and longer than ``validity``, after which the lease expires."""
    if rnd.random() < 0.9:
        return ()
    begin = rnd.randrange(ms)
    return ((rnd.randrange(brokers), begin, begin + rnd.choice([3000, 12_000, 20_000])),)


def _steady(seed: int, rnd: random.Random) -> ClusterScene:
    """Returns a scene with eager and paced clients above the drain, and lumps small beside the band; it can settle."""
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
    disk = DiskPlan(2 * (soft + band), int(soft + band * 0.3), drain, lump)
    return ClusterScene(
        seed, 180_000, _settings(rnd, "local", soft, band), tuple(clients), (disk,), rnd.choice([2, 5]), steady=True
    )
