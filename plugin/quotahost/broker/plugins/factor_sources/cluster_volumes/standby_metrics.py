"""The metrics as an instance of the standby source sees them, so that no number is shown or counted twice.

``cluster-volumes`` and its standby source run in one broker and may show the same numbers. And a standby source that
is built again reads its topic again, with the same refused records. So this module stands between the instance and
the broker's metrics; :class:`broker.plugins.factor_sources.cluster_volumes.standby.StandbyInstance` makes one each.
"""

from __future__ import annotations

import threading
from typing import Final

from quotahost.api import Metrics

#: Counters by type, name and attribute, and the largest value to which any instance has counted them.
Counted = dict[tuple[str, str, str], float]

_OF_THE_ANSWERER: Final = {"Brokers"}  # cluster-volumes shows these numbers, too, while the record answers


class StandbyMetrics:
    """``quotahost.api.Metrics`` for one instance; after ``withdraw`` it passes nothing on.

    Attributes:
        answers: whether the standby source answers now, so that its numbers of the cluster are the ones to show.
    """

    def __init__(self, metrics: Metrics, counted: Counted) -> None:
        """``metrics`` are the broker's; ``counted`` outlives the instance."""
        self._metrics, self._most = metrics, counted
        self._lock = threading.Lock()
        self._counted: Counted = {}
        self._shown: set[tuple[str, str]] = set()
        self._withdrawn = False
        self.answers = False

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """See ``quotahost.api.Metrics``."""
        with self._lock:
            # Shown under the lock: after withdraw() a late thread must not show a number that nobody would forget.
            if self._withdrawn or (type in _OF_THE_ANSWERER and not self.answers):
                return
            # Those of the answerer stay when the instance ends: cluster-volumes shows them on.
            if type not in _OF_THE_ANSWERER:
                self._shown.add((type, name))
            self._metrics.gauge(type, name, attribute, value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """See ``quotahost.api.Metrics``; adds only what goes beyond the count of any earlier instance."""
        key = type, name, attribute
        with self._lock:
            if self._withdrawn:
                return
            self._counted[key] = now = self._counted.get(key, 0.0) + by
            most = self._most.get(key, 0.0)
            self._most[key] = max(now, most)
            # A source that is built again reads the same refused records again. Adding 0 shows a counter.
            if now > most or not by:
                self._metrics.count(*key, now - most if by else 0.0)

    def forget(self, type: str, name: str) -> None:
        """See ``quotahost.api.Metrics``."""
        with self._lock:
            if not self._withdrawn and (type, name) in self._shown:
                self._shown.discard((type, name))
                self._metrics.forget(type, name)

    def withdraw(self) -> None:
        """Forget what the instance shows; it ends, but a thread of it may still show numbers."""
        with self._lock:
            self._withdrawn = True
            for type, name in self._shown:
                self._metrics.forget(type, name)
