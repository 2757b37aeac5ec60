"""The metrics as the standby factor source sees them: each number is shown, and counted, once."""

from __future__ import annotations

import threading
from typing import Final

from quotahost.api import Metrics

_OF_WHO_ANSWERS: Final = {"Brokers"}


class StandbyMetrics:
    """Hands everything on but numbers that the first source shows itself, and those that were counted before.

    A second source that is built again reads the same records again. So of a counter only that is added which goes
    beyond what any of its lives has counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        """``metrics`` are the first source's."""
        self._metrics = metrics
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, str, str], float] = {}
        self._most: dict[tuple[str, str, str], float] = {}
        self._shown: set[tuple[str, str]] = set()
        self._life = 0
        self.answers = False

    def life(self) -> Metrics:
        """The metrics for a source that is built now; what earlier ones show is withdrawn."""
        self.withdraw()
        return _Life(self, self._life)

    def withdraw(self) -> None:
        """Forget what the last life shows, and let it show nothing more."""
        with self._lock:
            self._life += 1
            self._counted.clear()
            for type, name in self._shown:
                self._metrics.forget(type, name)
            self._shown.clear()

    def gauge(self, life: int, type: str, name: str, attribute: str, value: float) -> None:
        """A number of that life."""
        with self._lock:
            if life != self._life or (type in _OF_WHO_ANSWERS and not self.answers):
                return
            if type not in _OF_WHO_ANSWERS:
                self._shown.add((type, name))
            self._metrics.gauge(type, name, attribute, value)

    def count(self, life: int, key: tuple[str, str, str], by: float) -> None:
        """That life has counted."""
        with self._lock:
            if life != self._life:
                return
            self._counted[key] = now = self._counted.get(key, 0.0) + by
            before, self._most[key] = self._most.get(key, 0.0), max(now, self._most.get(key, 0.0))
            if now > before or not by:
                self._metrics.count(*key, now - before if by else 0.0)

    def forget(self, life: int, type: str, name: str) -> None:
        """That life shows these numbers no more."""
        with self._lock:
            if life == self._life and (type, name) in self._shown:
                self._shown.discard((type, name))
                self._metrics.forget(type, name)


class _Life:
    """``quotahost.api.Metrics`` for one source from its building to its close."""

    def __init__(self, shown: StandbyMetrics, life: int) -> None:
        self._shown, self._life = shown, life

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        self._shown.gauge(self._life, type, name, attribute, value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self._shown.count(self._life, (type, name, attribute), by)

    def forget(self, type: str, name: str) -> None:
        self._shown.forget(self._life, type, name)
