"""These Protocols let a plugin query its broker (``Broker``, ``Disks``) and publish its numbers (``Metrics``).

``Context.broker`` answers questions about the broker and its cluster. ``Context.metrics`` takes the plugin's numbers.
``Context.disks`` returns the latest state of this broker's disks. A stat of a disk that hangs blocks its caller
forever, so one monitor thread of the host looks at the disks, and all plugins read the monitor's latest result.

Broker and metrics are separate objects because the source ``snapshots`` may be the standby of ``cluster-volumes``: both
sources ask the same broker, but the standby's metrics stand beside those of the other source. In a broker
``quotahost.broker.host`` provides both objects; in tests one ``quotahost.testing.FakeBroker`` is both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Protocol

from quotahost.model import Client, ClientUse, ClusterVolumes, Load, LogDir, Look, Volume
from quotahost.model.budgets import Budget, Part


class Broker(Protocol):
    """Answers a plugin's questions or raises. Any thread may call; a question to the cluster may take ten seconds."""

    def properties(self) -> Mapping[str, str]:
        """Some of the broker's own properties, such as node.id, process.roles, log.dirs and quota.window.num."""

    def client_config(self) -> dict[str, str]:
        """The librdkafka configuration for a Kafka client of the plugin; it contains secrets.

        The configuration comes from ``kafka.*`` if set, else from ``static.kafka.admin.*`` (Strimzi's names). If
        neither is set, the client connects to the inter-broker listener with this broker's own login.
        """

    def registered(self) -> dict[int, bool]:
        """Maps the id of every registered broker to True if the broker is fenced (registered, not in service)."""

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers."""

    def offline_log_dirs(self) -> tuple[str, ...]:
        """The log directories of this broker that Kafka has marked offline."""

    def replicas(self, replicas: Sequence[tuple[str, int]]) -> list[tuple[int, bool] | None]:
        """For each (topic, partition) the bytes of this broker's replica, and whether the replica is the leader.

        The entry is None if this broker has no replica of the partition. Kafka keeps the sizes in memory; a call takes
        some microseconds for each replica.
        """

    def usage(self, most: int) -> list[ClientUse]:
        """At most ``most`` clients that have their own quota and were active in the last two minutes, busiest first.

        The list has no exempt clients and no clients that share their quota (any scope except CLIENT), because Kafka
        measures such clients together. The list has clients without a quota only if a plugin has the attribute
        ``needs_usage = True``, which makes Kafka measure them. A call takes some microseconds for each client.
        """

    def look(self, most: int) -> Look:
        """The data of ``quotahost top`` for this broker: its state, its volumes, and at most ``most`` scopes.

        Scopes that are held back come first, then the busiest. With very many clients a call takes tens of
        milliseconds.
        """

    def explain(self, client: Client) -> list[str]:
        """The data of ``quotahost explain`` for a client on this broker: a line of JSON."""

    def load(self) -> Load:
        """Kafka's counters of the idle time of request handlers and network threads. A call takes microseconds."""


class Metrics(Protocol):
    """Publishes a plugin's numbers to JMX and to the Prometheus endpoint. Any thread may call; no call blocks.

    In JMX each number is an attribute of the MBean ``quotahost:type=TYPE,name=NAME``. The name is "" if the type has
    only one MBean. A plugin may choose all three, but a type can't contain any of ``,=:"*?`` or a line break. The
    Prometheus endpoint shows only the types and attributes that docs/reference/metrics.md lists.
    """

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Set a gauge to a value."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a counter. Adding 0 creates the counter if it doesn't exist yet."""

    def forget(self, type: str, name: str) -> None:
        """Remove all numbers of this type and name."""


def texts(*names: str) -> tuple[str, ...]:
    """Return type, name and attribute if they are valid.

    Raises TypeError if one of them is no str, and ValueError if JMX can't have the type. Without this check Java would
    drop the call silently, or Kafka would log a stack trace that doesn't name the plugin.
    """
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"type, name and attribute of a number are texts, not {names!r:.200}")
    if not set(',=:"*?\n').isdisjoint(names[0]):
        raise ValueError(f'the type of a number must have none of ,=:"*? and no line break, unlike {names[0]!r:.200}')
    return names


class Shown:
    """The published numbers of one type, by name and attribute. Private to quotahost."""

    def __init__(
        self, metrics: Metrics, type: str, before: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    ) -> None:
        """``before`` has the numbers that an earlier host has left; ``show`` removes them like its own."""
        self._metrics, self._type, self._numbers = metrics, type, before

    def show(self, numbers: Mapping[str, Mapping[str, float]]) -> None:
        """Publish these numbers, and remove all others of the type."""
        for name, before in self._numbers.items():
            # JMX can't remove one attribute: the whole MBean is removed, and the loop below adds the other attributes.
            if before.keys() - numbers.get(name, {}).keys():
                self._metrics.forget(self._type, name)
        for name, now in numbers.items():
            if now != self._numbers.get(name):
                for attribute, value in now.items():
                    self._metrics.gauge(self._type, name, attribute, value)
        self._numbers = numbers


@dataclass(frozen=True, slots=True)
class DiskState:
    """The state of this broker's file stores at one moment."""

    #: The volumes, with the limits of ``static.storage.overrides``. A volume above its soft limit also has its topics.
    volumes: tuple[Volume, ...]
    offline: tuple[str, ...] = ()  # the log directories that can't be read, each as ``DIRECTORY: REASON``
    places: tuple[tuple[str, str], ...] = ()  # pairs of a readable log directory and the name of its volume
    looked_at: datetime = field(default_factory=partial(datetime.now, UTC), compare=False)  # when the disks were read


class BudgetLook(Protocol):
    """The budgets of storage, and the bytes of this broker that count for them; for quotahost's own plugins."""

    #: The cluster's budgets by name, set by the factor source; None while unknown, and then nobody sums bytes.
    wanted: Mapping[str, Budget] | None
    parts: Mapping[str, Part] | None  # the latest result, by the budget's name; None before the first look


class Disks(Protocol):
    """The latest state of this broker's disks. Any thread may call; no call waits for a disk."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, from ``meta.properties`` of a log directory; "" until the monitor has read one."""

    @property
    def budgets(self) -> "BudgetLook":
        """Private: the bytes of this broker's replicas that count for the budgets of storage."""

    def latest(self) -> tuple[float, DiskState | None]:
        """The age of the latest state in seconds, and the state; before the first look, the seconds waited and None."""

    def known(self) -> ClusterVolumes:
        """The latest state in the form of a factor source's answer.

        Offline log directories are reported as unknown. If the state is older than ``validity``, its volumes stay, and
        all disks are reported as unknown.
        """
