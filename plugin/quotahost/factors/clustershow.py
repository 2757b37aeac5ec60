"""What the metrics show of the cluster's record."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from quotahost.broker import Broker
from quotahost.clusterrecord import ClusterRecord
from quotahost.factors.clusterstate import Told

_TYPE: Final = "ClusterRecord"


class ClusterShow:
    """Shows its numbers once a second."""

    def __init__(self, broker: Broker, clock: Callable[[], float]) -> None:
        """``clock`` monotonic, in seconds."""
        self._broker, self._clock = broker, clock
        self._due = clock()

    def record(self, record: ClusterRecord | None, age: float, told: Told | None) -> None:
        """The newest record, its age in seconds, and what it tells if it is what holds."""
        now = self._clock()
        if now < self._due:
            return
        self._due = now + 1
        if record is None or age == math.inf:
            self._broker.forget(_TYPE, "")
        else:
            for attribute, value in (("Age", age), ("Run", record.run), ("Sequence", record.sequence)):
                self._broker.gauge(_TYPE, "", attribute, value)
        if told is not None:
            self._broker.gauge("Brokers", "", "Stale", told.stale)
            self._broker.gauge("Brokers", "", "Missing", told.missing)
