"""``BudgetSizes`` sums the bytes that this broker's replicas take of each storage budget.

1. On the disk monitor's thread, ``look`` lists the log directories. It asks Java for the bytes of each replica of a
   budgeted topic, which Kafka has in memory.
2. ``look`` runs at most twice a second, and works for at most a hundredth of the time, however many partitions there
   are. A look on a busy machine waits for the processor for most of its duration. This wait is no work, and must not
   delay the next look, because nobody sees new bytes meanwhile.
3. A new leader's bytes count after 10 s. Until then the snapshot of the former leader may count the same bytes, and a
   failover would stop the writers of a budget that is half used. If the former leader becomes a follower, its bytes
   count until shortly before the new leader's count. Otherwise a move would let writers continue on a used-up budget.
4. If a listing fails, or if Kafka doesn't show the sizes, the last known sums stay in force. An offline log directory
   has no part of a budget, because its leaders move to other brokers.
"""

import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from quotahost.base.background import Clock, LoggedOnce
from quotahost.broker.disks.topics import MAX_ENTRIES, replicas
from quotahost.model.budgets import Budget, Part, Topics

log = logging.getLogger("quotahost.disks")

#: Returns the bytes of each replica and whether it is the leader, or None if Kafka doesn't know the replica.
Replicas: TypeAlias = Callable[[Sequence[tuple[str, int]]], Sequence[tuple[int, bool] | None]]

_EVERY: Final = 0.5  # seconds; writers continue within 2 s after space is free, and most of that time is this period
_SHARE: Final = 100  # looks work for at most 1/100 of the time
_IN_JAVA: Final = 1e-5  # the most seconds for which Java works for a replica; a child process can't measure them
#: Seconds until a new leader's bytes count. By then every broker has learned that a broker is out of service
#: (``kafka.registered_brokers``), and has read that the former leader no longer leads the partition.
_TAKEN_OVER: Final = 10.0
_HANDED_OVER: Final = 8.5  # for a former leader: two brokers see a move up to 1 s apart, and reading takes some time
_PATIENCE: Final = 10.0  # seconds; a broker that stops removes these sizes before it stops this thread
_KEPT: Final = 300.0  # seconds between the readings that are kept as bases of the growth
_LEAST: Final = 60.0  # seconds; growth over a shorter time does not show the growth per hour
_LARGEST: Final = 5  # topics of a budget to list

#: Finds the budgets of a topic.
_Find: TypeAlias = Callable[[str], Sequence[Budget]]


class _Replica(NamedTuple):
    size: int  # bytes
    counts: bool  # whether the replica counts as a leader
    since: float  # when Kafka last reported the same role as ``counts``, in monotonic seconds


class _Reading(NamedTuple):
    """The replicas that Kafka knew at one moment."""

    at: float  # monotonic seconds
    replicas: dict[tuple[str, int], _Replica]  # by topic and partition

    def parts(self, budgets_of: _Find) -> dict[str, Part]:
        """Return the part of each budget that has a replica here; a topic of several budgets counts in each of them."""
        used: dict[str, int] = defaultdict(int)
        topics: dict[str, set[str]] = defaultdict(set)
        for (topic, _), replica in self.replicas.items():
            for budget in budgets_of(topic):
                topics[budget.name].add(topic)
                used[budget.name] += replica.size if replica.counts or budget.replicas else 0
        return {name: Part(used[name], frozenset(of)) for name, of in topics.items()}


class BudgetSizes:
    """Implements ``quotahost.api.broker.BudgetLook``. Any thread may read; each attribute is replaced as a whole."""

    def __init__(self, replicas: Replicas, clock: Clock = time.monotonic, processor: Clock = time.thread_time) -> None:
        self._replicas, self._clock, self._processor = replicas, clock, processor
        self.wanted: Mapping[str, Budget] | None = None
        self.parts: Mapping[str, Part] | None = None  # by name, the budgets with a replica here
        self._seen: Mapping[str, Budget] | None = None
        self._find: _Find  # searches the budgets of ``_seen``
        self._read = _Reading(-math.inf, {})
        self._kept: list[_Reading] = []  # the bases of the growth, up to 5 and 10 minutes old
        self._due = -math.inf
        self._fault = LoggedOnce(log)

    def look(self, directories: Iterable[str]) -> None:
        """Find the sizes if the budgets are known and a look is due; look immediately if the budgets have changed.

        The caller leaves out offline directories, because clients can't write to the replicas there either.
        """
        wanted, began, worked = self.wanted, self._clock(), self._processor()
        if wanted is None or (began < self._due and wanted is self._seen):
            return
        if wanted is not self._seen:
            # The cache lives from look to look: with 100,000 prefixes the search takes longer than the rest of a look.
            self._seen, self._find = wanted, lru_cache(MAX_ENTRIES)(Topics(wanted.values()).budgets)
        try:
            read = self._sizes(began, self._names(directories) if wanted else [])
            self.parts = read.parts(self._find)
        except Exception as error:  # from the disk or from Java
            if began - self._read.at >= _PATIENCE:
                self._fault.report("the sizes of budgeted topics can't be read; the last known ones stay: %s", error)
        else:
            self._fault.healed()
            self._read = read
            if not self._kept or began - self._kept[-1].at >= _KEPT:
                self._kept = [*self._kept[-1:], read]
        work = self._processor() - worked + _IN_JAVA * len(self._read.replicas)
        now = self._clock()
        self._due = now + max(_EVERY, _SHARE * min(work, now - began))

    def largest(self, name: str) -> list[tuple[str, int, float | None]]:
        """The largest topics of a budget here: name, bytes that count, and growth in bytes/s, None if unknown."""
        budget, read, kept = (self.wanted or {}).get(name), self._read, self._kept
        if budget is None or not kept:
            return []
        of_budget, sizes = Topics([budget]), Counter[str]()
        grown: dict[str, list[int]] = defaultdict(list)
        for (topic, partition), replica in read.replicas.items():
            if (budget.replicas or replica.counts) and of_budget.budgets(topic):
                sizes[topic] += replica.size
                if before := kept[0].replicas.get((topic, partition)):
                    grown[topic].append(replica.size - before.size)
        seconds = read.at - kept[0].at
        return [
            (topic, size, sum(grown[topic]) / seconds if seconds >= _LEAST and topic in grown else None)
            for topic, size in sizes.most_common(_LARGEST)
        ]

    def _names(self, directories: Iterable[str]) -> list[tuple[str, int]]:
        """Topic and partition of each replica of a budgeted topic. Raises OSError if a directory can't be listed."""
        # A replica is in two directories while Kafka moves it.
        found = dict.fromkeys(replica for directory in directories for replica in replicas(directory))
        return [name for name in found if self._find(name[0])]

    def _sizes(self, at: float, names: list[tuple[str, int]]) -> _Reading:
        """Ask Java for the sizes. Raises ConnectionError if Java reports no size at all."""
        told = self._replicas(names) if names else []
        if names and not any(told):
            raise ConnectionError("Kafka reports size and leadership for none of its replicas")
        found = {}
        for name, replica in zip(names, told, strict=True):
            if replica is None:
                continue
            size, leads = replica
            _, counts, since = self._read.replicas.get(name, (size, leads, at))
            if leads is counts:
                since = at
            elif at - since >= (_HANDED_OVER if counts else _TAKEN_OVER):
                counts, since = leads, at
            found[name] = _Replica(size, counts, since)
        return _Reading(at, found)
