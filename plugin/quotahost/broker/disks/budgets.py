"""What this broker's replicas take of the budgets of storage.

The factor source says which budgets there are (``wanted``). On the disk monitor's thread ``look`` lists the log
directories, and asks Java for the bytes of each replica of a budgeted topic, which Kafka has in memory. It looks once a
second at most, and for at most a hundredth of the time, however many partitions there are. The factor source and the
task ``publish-volumes`` read what it found (``parts``).

A replica that has followed before leads, for budgets, from the tenth second on: until then the snapshot of the leader
before may count the same bytes, and a failover would stop the writers of a budget that is half used.

A log directory that can't be listed, or a Kafka that doesn't show the sizes, leaves the last parts: what is unknown
counts with what was known of it last.
"""

import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from quotahost.api import Broker
from quotahost.background import LoggedOnce
from quotahost.broker.disks.topics import MAX_ENTRIES, topic_of
from quotahost.model.budgets import Budget, Part, Replica, Topics, sums

log = logging.getLogger("quotahost.disks")

_EVERY: Final = 1.0  # seconds
_SHARE: Final = 100  # of the time, one part is spent on looks
#: Seconds within which every broker has seen who is out of service (``kafka.registered_brokers``), and has read what
#: another one no longer leads.
_HANDED_OVER: Final = 10.0


class BudgetSizes:
    """The budgets, and what of each lies on this broker. Any thread reads; each attribute is replaced as a whole.

    Attributes:
        wanted: the budgets of the cluster by name; the factor source sets them.
        parts: by name what was found last; only budgets with a replica here.
    """

    def __init__(self, broker: Broker, directories: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic."""
        self._broker, self._directories, self._clock = broker, directories, clock
        self.wanted: Mapping[str, Budget] = {}
        self.parts: Mapping[str, Part] = {}
        self._seen: Mapping[str, Budget] = {}
        self._due = -math.inf
        self._followed: dict[tuple[str, int], float] = {}  # when a replica was last seen to follow
        self._fault = LoggedOnce(log)

    def look(self, offline: frozenset[str] = frozenset()) -> None:
        """Find the sizes, if there are budgets and it is time; at once if the budgets have changed."""
        wanted, began = self.wanted, self._clock()
        if began < self._due and wanted is self._seen:
            return
        self._seen = wanted
        try:
            found = sums(wanted.values(), self._replicas(Topics(wanted.values()), offline)) if wanted else {}
        except Exception as error:  # of the disk or of Java
            self._fault.report("the sizes of budgeted topics can't be read; the last ones count on: %s", error)
        else:
            self._fault.healed()
            self.parts = {name: part for name, part in found.items() if part.topics}
        self._due = self._clock() + max(_EVERY, _SHARE * (self._clock() - began))

    def _replicas(self, budgets: Topics, offline: frozenset[str]) -> list[Replica]:
        """Those of budgeted topics.

        Raises:
            OSError: a directory can't be listed.
            ConnectionError: Java tells no size.
        """
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
        sizes = {name: size for name, size in zip(names, self._broker.replicas(names), strict=True) if size is not None}
        if names and not sizes:
            raise ConnectionError("Kafka shows the size of none of its logs (kafka.log:type=Log,name=Size)")
        now = self._clock()
        self._followed = {
            name: self._followed.get(name, -math.inf) if leads else now for name, (_, leads) in sizes.items()
        }
        return [
            Replica(name[0], size, leads and now - self._followed[name] >= _HANDED_OVER)
            for name, (size, leads) in sizes.items()
        ]


class NoBudgets:
    """The same of a node that has no replicas; attributes as of BudgetSizes."""

    def __init__(self) -> None:
        """Nothing is ever found."""
        self.wanted: Mapping[str, Budget] = {}
        self.parts: Mapping[str, Part] = {}
