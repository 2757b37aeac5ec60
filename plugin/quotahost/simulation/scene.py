"""What is played: brokers' properties, clients, disks, the way of snapshots, and deaths. Frozen values, no behaviour.

Times are in ms from the start, sizes in bytes, rates in bytes/s. ``scenes`` makes one of a seed, the program one of
its options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quotahost.model import Limit

Kind = Literal["eager", "paced", "bursty", "reconnecting"]


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A producer.

    Attributes:
        name: for messages and curves.
        kind: ``eager`` sends the next batch as soon as it may. ``paced`` has ``demand`` bytes/s to send and catches up
            after a wait, ``bursty`` has them in lumps, one every ``every`` ms. ``reconnecting`` is an eager one that
            evades mutes by new connections, one every ``every`` ms.
        quota: bytes/s.
        batch: bytes of one request.
        demand: bytes/s; of an eager one, as fast as its line is.
        every: see kind.
        home: the index of the broker that it writes to.
        replicas: indexes of the disks that its bytes are copied to.

    It writes to one topic, which has its name.
    """

    name: str
    kind: Kind
    quota: float
    batch: int
    demand: float
    every: int = 1000
    home: int = 0
    replicas: tuple[int, ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """The indexes of all disks that its bytes come to."""
        return (self.home, *self.replicas)


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """A broker's one volume.

    Attributes:
        capacity: bytes.
        used: bytes at the start.
        soft, hard: its own limits, as of ``static.storage.overrides``; None for the broker's.
        drain: bytes/s that retention deletes, in the mean.
        lump: ms between two deletions.
        others: from when on writers without a quota fill it at which rate, in order of time.
        cleanups: when an operator frees how many bytes.
    """

    capacity: int
    used: int
    soft: Limit | None = None
    hard: Limit | None = None
    drain: float = 0.0
    lump: int = 1000
    others: tuple[tuple[int, float], ...] = ()
    cleanups: tuple[tuple[int, int], ...] = ()


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
    """The Spark pipeline.

    Attributes:
        tick: ms between two records (``--tick``).
        deaths: when it dies and when it is back.
    """

    tick: int = 2000
    deaths: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a run depends on.

    Attributes:
        seed: of what is left to chance while it is played.
        ms: how long it takes.
        properties: the brokers' properties under ``client.quota.callback.``, without that.
        clients: the producers.
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
