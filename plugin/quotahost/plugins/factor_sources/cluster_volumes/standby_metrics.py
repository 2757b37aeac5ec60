"""The broker as the second factor source sees it: what it shows there is shown once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from quotahost.api import Broker
from quotahost.model import ClientUsage, LogDir

_OF_WHO_ANSWERS: Final = {"Brokers"}


class SecondBroker:
    """Hands everything on but numbers that the first source shows itself, and those that were counted before.

    A second source that is built again reads the same records again. So of a counter only that is added which goes
    beyond what any of its lives has counted.
    """

    def __init__(self, broker: Broker) -> None:
        """``broker`` is the first source's."""
        self._broker = broker
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, str, str], float] = {}
        self._most: dict[tuple[str, str, str], float] = {}
        self._shown: set[tuple[str, str]] = set()
        self._life = 0
        self.answers = False

    def life(self) -> Broker:
        """The broker for a source that is built now; what earlier ones show is withdrawn."""
        self.withdraw()
        return _Life(self, self._broker, self._life)

    def withdraw(self) -> None:
        """Forget what the last life shows, and let it show nothing more."""
        with self._lock:
            self._life += 1
            self._counted.clear()
            for type, name in self._shown:
                self._broker.forget(type, name)
            self._shown.clear()

    def gauge(self, life: int, type: str, name: str, attribute: str, value: float) -> None:
        """A number of that life."""
        with self._lock:
            if life != self._life or (type in _OF_WHO_ANSWERS and not self.answers):
                return
            if type not in _OF_WHO_ANSWERS:
                self._shown.add((type, name))
            self._broker.gauge(type, name, attribute, value)

    def count(self, life: int, key: tuple[str, str, str], by: float) -> None:
        """That life has counted."""
        with self._lock:
            if life != self._life:
                return
            self._counted[key] = now = self._counted.get(key, 0.0) + by
            before, self._most[key] = self._most.get(key, 0.0), max(now, self._most.get(key, 0.0))
            if now > before or not by:
                self._broker.count(*key, now - before if by else 0.0)

    def forget(self, life: int, type: str, name: str) -> None:
        """That life shows these numbers no more."""
        with self._lock:
            if life == self._life and (type, name) in self._shown:
                self._shown.discard((type, name))
                self._broker.forget(type, name)


class _Life:
    """A ``quotahost.api.Broker`` for one source from its building to its close."""

    def __init__(self, shown: SecondBroker, broker: Broker, life: int) -> None:
        self._shown, self._broker, self._life = shown, broker, life

    def usage(self, most: int) -> list[ClientUsage]:
        return self._broker.usage(most)

    def properties(self) -> Mapping[str, str]:
        return self._broker.properties()

    def client_config(self) -> dict[str, str]:
        return self._broker.client_config()

    def registered(self) -> dict[int, bool]:
        return self._broker.registered()

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        return self._broker.log_dirs(brokers)

    def offline_log_dirs(self) -> tuple[str, ...]:
        return self._broker.offline_log_dirs()

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        self._shown.gauge(self._life, type, name, attribute, value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self._shown.count(self._life, (type, name, attribute), by)

    def forget(self, type: str, name: str) -> None:
        self._shown.forget(self._life, type, name)

    def thread_ends(self) -> None:
        self._broker.thread_ends()
