"""What this broker's replicas take of the budgets of storage; how often it looks, and when a new leader counts.

On the disk monitor's thread ``look`` lists the log directories, and asks Java for the bytes of each replica of a
budgeted topic, which Kafka has in memory. It looks twice a second at most, and for at most a hundredth of the time,
however many partitions there are. How long a look takes is what the shortest of the last ones took: one that has waited
for the processor or the disk must not put off the next for long, since what comes meanwhile isn't seen.

When another replica of a partition becomes the leader, its bytes count from the tenth second on: until then the
snapshot of the leader before may count the same bytes, and a failover would stop the writers of a budget that is half
used. The leader before, if it follows now, counts until shortly before: else a move would let those on whose budget is
used up.

A listing that fails, or a Kafka that doesn't show the sizes, leaves the last parts: what is unknown counts with what
was known of it last. A log directory that is offline has no part: its leaders move to other brokers.
"""

import logging
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from quotahost.base.background import Clock, LoggedOnce
from quotahost.broker.disks.topics import MAX_ENTRIES, replicas
from quotahost.model.budgets import Budget, Part, Topics

log = logging.getLogger("quotahost.disks")

#: Of each of these replicas its bytes, and whether it leads; None where Kafka doesn't know it.
Replicas: TypeAlias = Callable[[Sequence[tuple[str, int]]], Sequence[tuple[int, bool] | None]]

_EVERY: Final = 0.5  # seconds; writers go on within 2 s after space is back, and most of that is this look
_SHARE: Final = 100  # of the time, one part is spent on looks
_LOOKS: Final = 3  # of which the shortest counts
#: Seconds within which every broker has seen who is out of service (``kafka.registered_brokers``), and has read what
#: another one no longer leads.
_TAKEN_OVER: Final = 10.0
_HANDED_OVER: Final = 8.5  # as two brokers see a move up to a second apart, and a snapshot takes some time to be read
_PATIENCE: Final = 10.0  # seconds; a broker that stops takes away first what is read here
_KEPT: Final = 300.0  # seconds after which a reading takes the place of the one that is kept for the growth
_LEAST: Final = 60.0  # seconds: growth over a shorter time says nothing of an hour
_LARGEST: Final = 5  # topics of a budget

#: Finds the budgets of a topic.
_Find: TypeAlias = Callable[[str], Sequence[Budget]]


class _Replica(NamedTuple):
    size: int  # bytes
    counts: bool  # whether it counts as a leader
    since: float  # when Kafka last said the same, in monotonic seconds


class _Reading(NamedTuple):
    """What was read of the replicas that Kafka knows."""

    at: float  # monotonic seconds
    replicas: dict[tuple[str, int], _Replica]  # by topic and partition

    def parts(self, budgets_of: _Find) -> dict[str, Part]:
        """What is taken of each budget with a replica here; a topic of several budgets counts in each."""
        used: dict[str, int] = defaultdict(int)
        topics: dict[str, set[str]] = defaultdict(set)
        for (topic, _), replica in self.replicas.items():
            for budget in budgets_of(topic):
                topics[budget.name].add(topic)
                used[budget.name] += replica.size if replica.counts or budget.replicas else 0
        return {name: Part(used[name], frozenset(of)) for name, of in topics.items()}


class BudgetSizes:
    """``quotahost.api.broker.BudgetLook``. Any thread reads; each attribute is replaced as a whole."""

    def __init__(self, replicas: Replicas, clock: Clock = time.monotonic) -> None:
        self._replicas, self._clock = replicas, clock
        self.wanted: Mapping[str, Budget] | None = None
        self.parts: Mapping[str, Part] | None = None  # of budgets with a replica here
        self._seen: Mapping[str, Budget] | None = None
        self._find: _Find  # those that were seen last
        self._read = _Reading(-math.inf, {})
        self._kept: list[_Reading] = []  # for the growth: they are up to 5 and 10 minutes old
        self._due = -math.inf
        self._took = deque([0.0] * _LOOKS, _LOOKS)  # seconds, of the last looks
        self._fault = LoggedOnce(log)

    def look(self, directories: Iterable[str]) -> None:
        """Find the sizes, if the budgets are known and it is time; at once if they have changed.

        No directory is offline: the replicas of such a one can't be written to, either.
        """
        wanted, began = self.wanted, self._clock()
        if wanted is None or (began < self._due and wanted is self._seen):
            return
        if wanted is not self._seen:
            # Kept from look to look: with 100,000 prefixes it takes longer to find the budgets than all the rest.
            self._seen, self._find = wanted, lru_cache(MAX_ENTRIES)(Topics(wanted.values()).budgets)
        try:
            read = self._sizes(began, self._names(directories) if wanted else [])
            self.parts = read.parts(self._find)
        except Exception as error:  # of the disk or of Java
            if began - self._read.at >= _PATIENCE:
                self._fault.report("the sizes of budgeted topics can't be read; the last ones count on: %s", error)
        else:
            self._fault.healed()
            self._read = read
            if not self._kept or began - self._kept[-1].at >= _KEPT:
                self._kept = [*self._kept[-1:], read]
        self._took.append(self._clock() - began)
        self._due = self._clock() + max(_EVERY, _SHARE * min(self._took))

    def largest(self, name: str) -> list[tuple[str, int, float | None]]:
        """The topics that take most of a budget here, the bytes that count, and bytes/s of growth; None if unknown."""
        budget, read, kept = (self.wanted or {}).get(name), self._read, self._kept
        if budget is None or not kept:
            return []
        known, sizes = Topics([budget]), Counter[str]()
        grown: dict[str, list[int]] = defaultdict(list)
        for (topic, partition), replica in read.replicas.items():
            if (budget.replicas or replica.counts) and known.budgets(topic):
                sizes[topic] += replica.size
                if before := kept[0].replicas.get((topic, partition)):
                    grown[topic].append(replica.size - before.size)
        seconds = read.at - kept[0].at
        return [
            (topic, size, sum(grown[topic]) / seconds if seconds >= _LEAST and topic in grown else None)
            for topic, size in sizes.most_common(_LARGEST)
        ]

    def _names(self, directories: Iterable[str]) -> list[tuple[str, int]]:
        """Topic and partition of the replicas of budgeted topics. Raises OSError if a directory can't be listed."""
        # One that is moved is there twice.
        found = dict.fromkeys(replica for directory in directories for replica in replicas(directory))
        return [name for name in found if self._find(name[0])]

    def _sizes(self, at: float, names: list[tuple[str, int]]) -> _Reading:
        """Ask Java for the sizes. Raises ConnectionError if it tells none."""
        told = self._replicas(names) if names else []
        if names and not any(told):
            raise ConnectionError("Kafka tells of none of its replicas the size and whether it leads")
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
