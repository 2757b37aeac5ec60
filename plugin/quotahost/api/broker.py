"""What a plugin may ask of its broker (``Broker``, ``Disks``) and show there (``Metrics``), as Protocols.

``Context.broker`` answers questions about the broker and its cluster. ``Context.metrics`` takes the numbers that the
plugin shows. ``Context.disks`` has the newest look at this broker's disks: statting a disk that hangs blocks the caller
for good, so the host has one monitor with a thread of its own, and every plugin reads what it found last.

Broker and metrics are apart because the source ``snapshots`` may stand by for ``cluster-volumes``: both ask the same
broker, while the standby's numbers are shown beside those of the other. In a broker the host provides both objects
(``quotahost.broker.host``), in tests ``quotahost.testing.FakeBroker`` is both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Protocol

from quotahost.model import Client, ClientUse, ClusterVolumes, LogDir, Look, Volume
from quotahost.model.budgets import Budget, Part
from quotahost.model.use import Load


class Broker(Protocol):
    """Answers a plugin's questions, or raises an exception. Any thread may call; the cluster may take ten seconds."""

    def properties(self) -> Mapping[str, str]:
        """Some of the broker's own properties: node.id, process.roles, log.dirs, quota.window.num and the like."""

    def client_config(self) -> dict[str, str]:
        """The librdkafka configuration of the plugin's own Kafka client; it contains secrets.

        The client connects as ``kafka.*`` describes it if that is set, else as ``static.kafka.admin.*`` (Strimzi's
        names), else as this broker itself to its inter-broker listener.
        """

    def registered(self) -> dict[int, bool]:
        """Every registered broker of the cluster by its id, and whether it is fenced (registered, not in service)."""

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers."""

    def offline_log_dirs(self) -> tuple[str, ...]:
        """The log directories of this broker that Kafka has marked offline."""

    def replicas(self, replicas: Sequence[tuple[str, int]]) -> list[tuple[int, bool] | None]:
        """For each topic and partition the bytes of this broker's replica, and whether it leads; None if it has none.

        Kafka has the sizes in memory. A call takes some microseconds for each replica.
        """

    def usage(self, most: int) -> list[ClientUse]:
        """At most ``most`` clients of the last two minutes that have a quota of their own, busiest first.

        Exempt clients are left out, and so are clients that share their quota (any scope but CLIENT), because Kafka
        measures those together. A client without a quota is listed only if a plugin says by an attribute
        ``needs_usage = True`` that it reads the usage: Kafka measures it then. A call costs some microseconds
        for each client.
        """

    def look(self, most: int) -> Look:
        """What ``quotahost top`` shows of this broker: its state, its volumes, and at most ``most`` scopes' use.

        Scopes that are held back come first, then the busiest. With very many clients a call takes tens of
        milliseconds.
        """

    def explain(self, client: Client) -> list[str]:
        """What ``quotahost explain`` reads of this broker about a client: a line of JSON."""

    def load(self) -> Load:
        """What Kafka counts of how long this broker's request handlers and network threads have been idle.

        A call takes some microseconds.
        """


class Metrics(Protocol):
    """Where a plugin shows numbers: JMX and the Prometheus endpoint. Any thread may call; no call waits.

    JMX shows each number as an attribute of the MBean ``quotahost:type=TYPE,name=NAME``; the name is "" where there is
    one MBean of the type only. A plugin may choose all three, but JMX has no type with one of ``,=:"*?``. The
    Prometheus endpoint shows only the types and attributes that docs/reference/metrics.md lists.
    """

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show this value from now on."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a counter. Adding 0 shows a counter that has counted nothing yet."""

    def forget(self, type: str, name: str) -> None:
        """No longer show any number of this type and name."""


def texts(*names: str) -> tuple[str, ...]:
    """A number's type, name and attribute. Raises TypeError if one is no text, ValueError if JMX can't have the type.

    Java would drop the call, unheard, or log a stack of Kafka's that doesn't name the plugin.
    """
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"type, name and attribute of a number are texts, not {names!r:.200}")
    if not set(',=:"*?\n').isdisjoint(names[0]):
        raise ValueError(f'the type of a number has none of ,=:"*? and no line break, unlike {names[0]!r:.200}')
    return names


class Shown:
    """The numbers of one type that are shown now, by name and attribute. Private to quotahost."""

    def __init__(
        self, metrics: Metrics, type: str, before: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    ) -> None:
        """``before`` was shown by somebody else, and goes like the rest."""
        self._metrics, self._type, self._numbers = metrics, type, before

    def show(self, numbers: Mapping[str, Mapping[str, float]]) -> None:
        """Show these, and no others."""
        for name, before in self._numbers.items():
            # A single number can't be taken away: the bean goes, and comes back with the numbers that are left.
            if before.keys() - numbers.get(name, {}).keys():
                self._metrics.forget(self._type, name)
        for name, now in numbers.items():
            if now != self._numbers.get(name):
                for attribute, value in now.items():
                    self._metrics.gauge(self._type, name, attribute, value)
        self._numbers = numbers


@dataclass(frozen=True, slots=True)
class DiskState:
    """What one look at the file stores of this broker found."""

    volumes: tuple[Volume, ...]  # with the limits of ``static.storage.overrides``; above a soft limit with the topics
    offline: tuple[str, ...] = ()  # the log directories that can't be read, each as ``DIRECTORY: REASON``
    places: tuple[tuple[str, str], ...] = ()  # pairs of a log directory that can be read and the name of its volume
    looked_at: datetime = field(default_factory=partial(datetime.now, UTC), compare=False)


class BudgetLook(Protocol):
    """The budgets of storage that are looked for on this broker, and what was found; for quotahost's own plugins."""

    #: Those of the cluster by name; the factor source sets them. None: they are not known (yet), and nobody looks.
    wanted: Mapping[str, Budget] | None
    parts: Mapping[str, Part] | None  # by name what was found last; None before the first look


class Disks(Protocol):
    """The newest look at this broker's disks. Any thread may call; no call waits for a disk."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, from the log directories' ``meta.properties``; "" until one was read."""

    @property
    def budgets(self) -> "BudgetLook":
        """What this broker's replicas take of the budgets of storage."""

    def latest(self) -> tuple[float, DiskState | None]:
        """The newest look and its age in seconds; before the first look, None and the seconds of waiting."""

    def known(self) -> ClusterVolumes:
        """The newest look as a factor source answers it.

        Offline log directories are unknown. Once the look is older than ``validity``, the last volumes stay and all
        disks are unknown.
        """
