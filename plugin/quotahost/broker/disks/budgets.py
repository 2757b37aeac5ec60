"""What this broker's replicas take of the budgets of storage.

On the disk monitor's thread ``look`` lists the log directories, and asks Java for the bytes of each replica of a
budgeted topic, which Kafka has in memory. It looks once a second at most, and for at most a hundredth of the time,
however many partitions there are.

When another replica of a partition becomes the leader, its bytes count from the tenth second on: until then the
snapshot of the leader before may count the same bytes, and a failover would stop the writers of a budget that is half
used. The leader before, if it follows now, counts until shortly before: else a move would let those on whose budget is
used up.

A log directory that can't be listed, or a Kafka that doesn't show the sizes, leaves the last parts: what is unknown
counts with what was known of it last.
"""

import logging
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from quotahost.background import Clock, LoggedOnce
from quotahost.broker.disks.topics import MAX_ENTRIES, topic_of
from quotahost.model.budgets import Budget, Part, Replica, Topics, sums

log = logging.getLogger("quotahost.disks")

#: Of each of these replicas its bytes, and whether it leads; None where Kafka doesn't know it.
Replicas: TypeAlias = Callable[[Sequence[tuple[str, int]]], Sequence[tuple[int, bool] | None]]

_EVERY: Final = 1.0  # seconds
_SHARE: Final = 100  # of the time, one part is spent on looks
#: Seconds within which every broker has seen who is out of service (``kafka.registered_brokers``), and has read what
#: another one no longer leads.
_TAKEN_OVER: Final = 10.0
_HANDED_OVER: Final = 8.5  # as two brokers see a move up to a second apart, and a snapshot takes some time to be read
_LARGEST: Final = 5  # topics of a budget


class BudgetSizes:
    """``quotahost.api.broker.BudgetLook``. Any thread reads; each attribute is replaced as a whole."""

    def __init__(self, replicas: Replicas, directories: Sequence[str], clock: Clock = time.monotonic) -> None:
        self._replicas, self._directories, self._clock = replicas, directories, clock
        self.wanted: Mapping[str, Budget] | None = None
        self.parts: Mapping[str, Part] | None = None  # of budgets with a replica here
        self._seen: Mapping[str, Budget] | None = None
        self._read: list[Replica] = []
        self._due = -math.inf
        #: Of each replica that Kafka knows, whether it counts as a leader, and when Kafka last said the same.
        self._roles: dict[tuple[str, int], tuple[bool, float]] = {}
        self._fault = LoggedOnce(log)

    def look(self, offline: frozenset[str] = frozenset()) -> None:
        """Find the sizes, if the budgets are known and it is time; at once if they have changed."""
        wanted, began = self.wanted, self._clock()
        if wanted is None or (began < self._due and wanted is self._seen):
            return
        self._seen = wanted
        try:
            read = self._sizes(began, self._names(Topics(wanted.values()), offline)) if wanted else []
            found = sums(wanted.values(), read)
        except Exception as error:  # of the disk or of Java
            self._fault.report("the sizes of budgeted topics can't be read; the last ones count on: %s", error)
        else:
            self._fault.healed()
            self.parts = {name: part for name, part in found.items() if part.topics}
            self._read = read
        self._due = self._clock() + max(_EVERY, _SHARE * (self._clock() - began))

    def largest(self, name: str) -> list[tuple[str, int]]:
        """The topics that take most of a budget here, and the bytes that count."""
        budget, sizes = (self.wanted or {}).get(name), Counter[str]()
        if budget is None:
            return []
        known = Topics([budget])
        for topic, size, leads in self._read:
            if (budget.replicas or leads) and known.budgets(topic):
                sizes[topic] += size
        return sizes.most_common(_LARGEST)

    def _names(self, budgets: Topics, offline: frozenset[str]) -> list[tuple[str, int]]:
        """Topic and partition of the replicas of budgeted topics. Raises OSError if a directory can't be listed."""
        names = []
        for directory in self._directories:
            if directory in offline:  # its replicas can't be written to either
                continue
            with os.scandir(directory) as entries:
                for number, entry in enumerate(entries):
                    if number > MAX_ENTRIES:
                        raise OSError(f"{directory} has more than {MAX_ENTRIES:,} entries")
                    topic, stays = topic_of(entry.name)
                    if stays and not entry.name.endswith("-future") and budgets.budgets(topic):
                        names.append((topic, int(entry.name.removeprefix(topic + "-"))))
        return names

    def _sizes(self, at: float, names: Sequence[tuple[str, int]]) -> list[Replica]:
        """Ask Java for the sizes; without those that Kafka doesn't know. Raises ConnectionError if it tells none."""
        told = self._replicas(names) if names else []
        if names and not any(told):
            raise ConnectionError("Kafka shows the size of none of its logs (kafka.log:type=Log,name=Size)")
        before, self._roles, read = self._roles, {}, []
        for name, replica in zip(names, told, strict=True):
            if replica is None:
                continue
            size, leads = replica
            counts, since = before.get(name, (leads, at))
            if leads is counts:
                since = at
            elif at - since >= (_HANDED_OVER if counts else _TAKEN_OVER):
                counts, since = leads, at
            self._roles[name] = counts, since
            read.append(Replica(name[0], size, counts))
        return read
