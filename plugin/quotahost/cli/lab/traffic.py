"""Scenes of ``simulate disk``, the clock of a run, and the metric tags of clients.

All that is left to chance in a scene comes from its seed. Times are in ms from the start, sizes in bytes, rates in
bytes/s. A run has no clock of its own: it jumps from event to event, and each event may ask for later ones.

With ``factor.scope=topics`` a client has other tags while it writes to an affected topic: modelled are Java's ``Marks``
and ``Tags`` (``org.quotahost.table``). Each client writes to a topic of its own, whose name is the client's: so it is
marked as long as that topic is affected.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Final, Literal, TypeAlias

from quotahost.model.volumes import Affected
from quotahost.settings.broker import Settings
from quotahost.throttling import SampledRate, rise

NEVER: Final = -(10**9)  # ms
Kind: TypeAlias = Literal["eager", "paced", "bursty", "reconnecting"]

# ---- what is played --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A producer. It writes to one topic, which has its name.

    An ``eager`` one sends the next batch as soon as it may. A ``paced`` one has ``demand`` bytes/s to send and catches
    up after a wait, a ``bursty`` one has them in lumps, one every ``every`` ms. A ``reconnecting`` one is eager, and
    evades mutes by new connections, one every ``every`` ms.
    """

    name: str
    kind: Kind
    quota: float
    batch: int  # bytes of one request
    demand: float  # an eager one's is as fast as its line is
    every: int = 1000
    home: int = 0  # the index of the broker that it writes to
    replicas: tuple[int, ...] = ()  # and of the disks that its bytes are copied to

    @property
    def places(self) -> tuple[int, ...]:
        return (self.home, *self.replicas)


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """A broker's one volume, which has the limits of the properties; or a budget of storage."""

    capacity: int  # bytes; of a budget all of them
    used: int | None  # bytes, at the start; None: as full as the soft limit
    drain: float = 0.0  # bytes/s that retention deletes, in the mean
    lump: int = 1000  # ms between two deletions
    is_budget: bool = False  # then the topics of all clients are of it


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a run depends on; each broker has a disk."""

    seed: int
    ms: int
    settings: Settings  # the brokers'
    clients: tuple[ClientPlan, ...]
    disks: tuple[DiskPlan, ...]
    windows: int = 11  # quota.window.num
    window_ms: int = 1000
    fence: bool = True


# ---- the clock -------------------------------------------------------------------------------------------------


def ms(span: timedelta) -> int:
    """The properties' durations are whole ms here."""
    return round(span.total_seconds() * 1000)


class Events:
    """Events in order of time, and of those at the same time in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0  # the time of the event that happens, in ms from the start
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = count()

    def at(self, ms: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (ms, next(self._count), do))

    def after(self, ms: int, do: Callable[[], None]) -> None:
        self.at(self.now + ms, do)

    def clock(self) -> float:
        """Seconds, as the host and the plugins take them; it never begins at 0, as no monotonic clock does."""
        return 1000.0 + self.now / 1000

    def run(self, until: int) -> None:
        heap = self._heap
        while heap and heap[0][0] < until:
            self.now, _, do = heapq.heappop(heap)
            do()
        self.now = until


# ---- tags ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tags:
    """One pair of metric tags."""

    rate: SampledRate  # what Kafka measures under them
    began: int | None  # when in ms they began with empty windows, so that their limit rises; None if it doesn't
    seen: int  # when in ms they were used last


class Slowing:
    """The tags of one broker's clients, from its start on, and whom its factor slows."""

    def __init__(self, windows: int, window_ms: int) -> None:
        """``quota.window.num``, and ``quota.window.size.seconds`` in ms."""
        self._windows, self._window_ms = windows, window_ms
        #: By client, and whether they are its slowed ones.
        self.by_client: dict[tuple[str, bool], Tags] = {}
        self.affected: Affected | None = None  # the topics whose writers the factor is for; None: it is for all clients

    def affect(self, affected: Affected | None, now: int) -> None:
        """The factor is for the writers of these topics from now on, or with None for all clients.

        A client whose mark ends gets its own tags back: their limit rises if Kafka has forgotten what they had sent.
        """
        marked = () if self.affected is None else self.affected.places
        self.affected = affected
        for client in marked:
            if not self.slows(client) and self._recent(client, False, now) is None:
                self.by_client[client, False] = Tags(self._rate(), now, NEVER)

    def slows(self, client: str) -> bool:
        return self.affected is not None and client in self.affected.places

    def holds(self, client: str) -> bool:
        return self.affected is None or client in self.affected.held

    def tags(self, client: str, now: int) -> Tags:
        """The tags that a client has now; the slowed ones are new if unused for as long as Kafka looks back."""
        if self.slows(client):
            return self._recent(client, True, now) or Tags(self._rate(), now, now)
        return self.by_client.get((client, False)) or Tags(self._rate(), None, now)

    def use(self, client: str, now: int) -> Tags:
        """The same, which Kafka knows from now on."""
        tags = self.by_client[client, self.slows(client)] = self.tags(client, now)
        tags.seen = now
        return tags

    def share(self, tags: Tags, now: int) -> float:
        """Which share of its limit a client gets under these tags, above 0 and up to 1."""
        return 1.0 if tags.began is None else rise(now - tags.began, self._windows, self._window_ms)

    def _rate(self) -> SampledRate:
        return SampledRate(self._windows, self._window_ms)

    def _recent(self, client: str, slowed: bool, now: int) -> Tags | None:
        tags = self.by_client.get((client, slowed))
        return tags if tags and now - tags.seen <= (self._windows + 1) * self._window_ms else None
