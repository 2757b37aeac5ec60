"""A broker that answers what a test has set, and remembers the numbers that plugins show on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from quotahost.api.broker import texts
from quotahost.model import Client, ClientUse, LogDir, Look
from quotahost.model.use import Load

T = TypeVar("T")


@dataclass(slots=True)
class FakeBroker:
    """A ``quotahost.api.Broker`` and ``Metrics`` for tests; change its attributes at any time."""

    node: Mapping[str, str] = field(default_factory=dict)  # ``properties()``, such as ``{"log.dirs": "/data/1"}``
    client: dict[str, str] = field(default_factory=dict)  # ``client_config()``
    # An exception is raised in place of an answer. By id, whether a broker of ``registered()`` is fenced.
    brokers: dict[int, bool] | Exception = field(default_factory=lambda: ConnectionError("no broker here"))
    directories: list[LogDir] | Exception = field(default_factory=lambda: ConnectionError("no broker here"))
    offline: tuple[str, ...] = ()  # ``offline_log_dirs()``
    sizes: dict[tuple[str, int], tuple[int, bool]] = field(default_factory=dict)  # ``replicas()``, by topic, partition
    usages: list[ClientUse] | Exception = field(default_factory=list)
    looked: Look | Exception = field(default_factory=lambda: ConnectionError("no broker here"))
    loaded: Load | Exception = field(default_factory=lambda: Load(0, 0, {}, 0))
    explained: dict[Client, list[str]] = field(default_factory=dict)
    #: Every gauge and counter by type, name and attribute, as it is now.
    shown: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def number(self, type: str, attribute: str, name: str = "") -> float | None:
        """The number that is shown, None if none is."""
        return self.shown.get((type, name, attribute))

    # ---- quotahost.api.Broker ----

    def properties(self) -> Mapping[str, str]:
        return self.node

    def client_config(self) -> dict[str, str]:
        # A copy, so that what a plugin adds for its own client doesn't show in the next answer.
        return dict(self.client)

    def registered(self) -> dict[int, bool]:
        return dict(_answer(self.brokers))

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        return [directory for directory in _answer(self.directories) if directory.broker in brokers]

    def offline_log_dirs(self) -> tuple[str, ...]:
        return self.offline

    def replicas(self, replicas: Sequence[tuple[str, int]]) -> list[tuple[int, bool] | None]:
        return [self.sizes.get(replica) for replica in replicas]

    def usage(self, most: int) -> list[ClientUse]:
        return _answer(self.usages)[:most]

    def look(self, most: int) -> Look:
        return _answer(self.looked).first(most)

    def explain(self, client: Client) -> list[str]:
        return self.explained.get(client, [])

    def load(self) -> Load:
        return _answer(self.loaded)

    # ---- quotahost.api.Metrics ----

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        texts(type, name, attribute)  # what is no text, or no number, fails here, as in a broker
        self.shown[type, name, attribute] = float(value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self.gauge(type, name, attribute, self.shown.get((type, name, attribute), 0.0) + float(by))

    def forget(self, type: str, name: str) -> None:
        # A list, since the loop removes keys of what it walks through.
        for key in [key for key in self.shown if key[:2] == (type, name)]:
            self.shown.pop(key, None)


def _answer(set_to: T | Exception) -> T:
    if isinstance(set_to, Exception):
        raise set_to
    return set_to
