"""What a plugin may ask of the broker that it lives in, and the numbers that it shows there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from quotahost.model import ClientUsage, LogDir


class Broker(Protocol):
    """The broker as plugins see it. Any thread may call; what asks the cluster waits up to ten seconds.

    A thread that has called any of these calls ``thread_ends`` as its last act; ``Context.start_thread`` does.
    """

    def properties(self) -> Mapping[str, str]:
        """A few of the broker's own: node.id, process.roles, log.dirs, quota.window.num and the like."""
        ...

    def client_config(self) -> dict[str, str]:
        """Librdkafka's configuration of a client that connects as the plugin's own; holds secrets.

        That of ``kafka.*`` if it is set, else that of ``static.kafka.admin.*`` (Strimzi's), else as this broker
        itself to its inter-broker listener.
        """
        ...

    def registered(self) -> dict[int, bool]:
        """Every registered broker of the cluster, and whether it is fenced (stopped), by its id.

        Raises:
            Exception: the cluster doesn't answer (yet).
        """
        ...

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers.

        Raises:
            Exception: the cluster doesn't answer (yet).
        """
        ...

    def offline_log_dirs(self) -> tuple[str, ...]:
        """Log directories of this broker that Kafka itself has given up."""
        ...

    def usage(self, most: int) -> list[ClientUsage]:
        """The busiest clients of the last two minutes that have a quota of their own, busiest first.

        Left out are exempt clients and those that share their quota (any scope but CLIENT): Kafka measures those
        together. It costs some microseconds for each client.

        Raises:
            Exception: Java can't tell.
        """
        ...

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show a number of ``quotahost.metrics.CATALOGUE`` (type and attribute; name where it has one)."""
        ...

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a counter of the catalogue."""
        ...

    def forget(self, type: str, name: str) -> None:
        """No longer show the numbers of this name."""
        ...

    def thread_ends(self) -> None:
        """The calling thread ends and will ask nothing more."""
        ...


class NoBroker:
    """Stands for the broker where there is none: knows nothing, shows nothing."""

    def properties(self) -> Mapping[str, str]:
        """Empty."""
        return {}

    def client_config(self) -> dict[str, str]:
        """Empty."""
        return {}

    def registered(self) -> dict[int, bool]:
        """Nothing is known."""
        raise ConnectionError("there is no broker here")

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """Nothing is known."""
        raise ConnectionError("there is no broker here")

    def offline_log_dirs(self) -> tuple[str, ...]:
        """None are."""
        return ()

    def usage(self, most: int) -> list[ClientUsage]:
        """Nobody uses anything."""
        return []

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show nothing."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Show nothing."""

    def forget(self, type: str, name: str) -> None:
        """Show nothing."""

    def thread_ends(self) -> None:
        """Nothing to do."""
