"""``simulate disk`` plays a scene: this module has the scene's plans, the clock of a run, and clients' metric tags.

All random numbers of a scene come from its seed. Times are in ms from the start, sizes in bytes, rates in bytes/s.
A run has no real clock: the simulated time jumps from event to event, and each event may schedule later ones.

With ``factor.scope=topics`` a client has other tags while it writes to an affected topic. ``Slowing`` models Java's
``Marks`` and ``Tags`` (``org.quotahost.table``). Each client writes to one topic, which has the client's name, so a
client is marked as long as its topic is affected.
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
Kind: TypeAlias = Literal["eager", "paced", "bursty"]

# ---- the scene -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A producer. It writes to one topic, which has the client's name.

    An ``eager`` client sends the next batch as soon as it may. A ``paced`` client has ``demand`` bytes/s to send and
    catches up after a wait. A ``bursty`` client has the same bytes in one burst every ``every`` ms.
    """

    name: str
    kind: Kind
    quota: float
    batch: int  # bytes of one request
    demand: float  # bytes/s; for an eager client, the rate of its network line
    every: int = 1000
    home: int = 0  # the index of the broker that leads the client's topic
    replicas: tuple[int, ...] = ()  # the indexes of the followers' disks

    @property
    def places(self) -> tuple[int, ...]:
        return (self.home, *self.replicas)


@dataclass(frozen=True, slots=True)
class DiskPlan:
    """The only volume of a broker, with the limits of the properties; or a budget of storage."""

    capacity: int  # bytes; for a budget, its size
    used: int | None  # bytes at the start; None means the bytes at the soft limit
    drain: float = 0.0  # bytes/s that retention deletes, on average
    lump: int = 1000  # ms between two deletions
    is_budget: bool = False  # if true, the budget has the topics of all clients


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a run depends on; each broker has one disk."""

    seed: int
    ms: int  # the length of the run
    settings: Settings  # of all brokers
    clients: tuple[ClientPlan, ...]
    disks: tuple[DiskPlan, ...]
    windows: int = 11  # quota.window.num
    window_ms: int = 1000
    fence: bool = True


# ---- the clock -------------------------------------------------------------------------------------------------


def ms(span: timedelta) -> int:
    """Convert a duration to whole ms."""
    return round(span.total_seconds() * 1000)


class Events:
    """Runs events in order of time; events of the same time run in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 0  # the time of the running event, in ms from the start
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = count()

    def at(self, ms: int, do: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (ms, next(self._count), do))

    def after(self, ms: int, do: Callable[[], None]) -> None:
        self.at(self.now + ms, do)

    def clock(self) -> float:
        """The time in seconds, for the host and the plugins. Like a real monotonic clock, it doesn't begin at 0."""
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

    rate: SampledRate  # the rate that Kafka measures under these tags
    began: int | None  # the time in ms at which the limit began to rise from empty windows; None if it doesn't rise
    seen: int  # the time in ms of the last request


class Slowing:
    """The tags of one broker's clients since the broker's start, and the clients that its factor slows."""

    def __init__(self, windows: int, window_ms: int) -> None:
        """``windows`` is ``quota.window.num``; ``window_ms`` is ``quota.window.size.seconds`` in ms."""
        self._windows, self._window_ms = windows, window_ms
        #: The key is a client's name, and whether the tags are its slowed tags.
        self.by_client: dict[tuple[str, bool], Tags] = {}
        self.affected: Affected | None = None  # the factor is for the writers to these topics; None: for all clients

    def affect(self, affected: Affected | None, now: int) -> None:
        """From now on the factor is for the writers to these topics; with None it is for all clients.

        A client whose mark ends gets its own tags back. Their limit rises from a part if Kafka's windows are empty.
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
        """The tags of a client now; the slowed tags are new if they were unused for as long as Kafka looks back."""
        if self.slows(client):
            return self._recent(client, True, now) or Tags(self._rate(), now, now)
        return self.by_client.get((client, False)) or Tags(self._rate(), None, now)

    def use(self, client: str, now: int) -> Tags:
        """Return the same as :meth:`tags`, and keep the tags: Kafka has a sensor for them from now on."""
        tags = self.by_client[client, self.slows(client)] = self.tags(client, now)
        tags.seen = now
        return tags

    def share(self, tags: Tags, now: int) -> float:
        """The share of its limit that a client gets under these tags, above 0 and up to 1."""
        return 1.0 if tags.began is None else rise(now - tags.began, self._windows, self._window_ms)

    def _rate(self) -> SampledRate:
        return SampledRate(self._windows, self._window_ms)

    def _recent(self, client: str, slowed: bool, now: int) -> Tags | None:
        tags = self.by_client.get((client, slowed))
        return tags if tags and now - tags.seen <= (self._windows + 1) * self._window_ms else None
