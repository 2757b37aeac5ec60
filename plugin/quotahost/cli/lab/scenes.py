"""What is played: brokers' properties, their clients and their disks.

A scene is a frozen value without behaviour, made of the options of ``quotahost simulate disk``. All that is left to
chance comes from its seed. Times are in ms from the start, sizes in bytes, rates in bytes/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quotahost.model import Limit

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
        is_budget: it is a budget of storage of ``capacity`` bytes, of which the topics of all clients are.
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
    is_budget: bool = False


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
    """

    seed: int
    ms: int
    properties: tuple[tuple[str, str], ...]
    clients: tuple[ClientPlan, ...]
    disks: tuple[DiskPlan, ...]
    windows: int = 11
    window_ms: int = 1000
    fence: bool = True
