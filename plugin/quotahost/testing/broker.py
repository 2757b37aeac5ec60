"""FakeBroker is a broker for tests: it returns the answers that a test sets, and keeps the numbers of plugins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from quotahost.api.broker import texts
from quotahost.model import Client, ClientUse, Load, LogDir, Look

T = TypeVar("T")


@dataclass(slots=True)
class FakeBroker:
    """A ``Broker`` and ``Metrics`` whose answers a test may set at any time. An exception as an answer is raised."""

    node: Mapping[str, str] = field(default_factory=dict)  # ``properties()``, such as ``{"log.dirs": "/data/1"}``
    client: dict[str, str] = field(default_factory=dict)  # ``client_config()``
    #: ``registered()``: for each broker's id, True if the broker is fenced.
    brokers: dict[int, bool] | Exception = field(default_factory=lambda: ConnectionError("no broker here"))
    directories: list[LogDir] | Exception = field(default_factory=lambda: ConnectionError("no broker here"))
    offline: tuple[str, ...] = ()  # ``offline_log_dirs()``
    sizes: dict[tuple[str, int], tuple[int, bool]] = field(default_factory=dict)  # ``replicas()``, by topic, partition
    usages: list[ClientUse] | Exception = field(default_factory=list)  # ``usage()``
    looked: Look | Exception = field(default_factory=lambda: ConnectionError("no broker here"))  # ``look()``
    loaded: Load | Exception = field(default_factory=lambda: Load(0, 0, {}, 0))  # ``load()``
    explained: dict[Client, list[str]] = field(default_factory=dict)  # ``explain()``
    #: The present value of every gauge and counter, by type, name and attribute.
    shown: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def number(self, type: str, attribute: str, name: str = "") -> float | None:
        """The value of a gauge or counter; None if a plugin has not published it."""
        return self.shown.get((type, name, attribute))

    # ---- quotahost.api.Broker ----

    def properties(self) -> Mapping[str, str]:
        return self.node

    def client_config(self) -> dict[str, str]:
        # A copy, because a plugin may add properties for its own client to the answer.
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
        texts(type, name, attribute)  # here and in float() wrong types fail as they do in a broker
        self.shown[type, name, attribute] = float(value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self.gauge(type, name, attribute, self.shown.get((type, name, attribute), 0.0) + float(by))

    def forget(self, type: str, name: str) -> None:
        # A list, because the loop removes keys.
        for key in [key for key in self.shown if key[:2] == (type, name)]:
            self.shown.pop(key, None)


def _answer(set_to: T | Exception) -> T:
    if isinstance(set_to, Exception):
        raise set_to
    return set_to
