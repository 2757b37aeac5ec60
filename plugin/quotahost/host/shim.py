"""The Java half as the host sees it: a Protocol, so that the host runs without a JVM in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from quotahost.host.messages import Answers, Batch, Gauge
from quotahost.model import ClientUsage, LogDir
from quotahost.settings.broker import Settings


class Shim(Protocol):
    """What the host asks of Java."""

    def properties(self) -> dict[str, str]:
        """The broker properties under ``client.quota.callback.``, secrets included."""
        ...

    def broker(self) -> dict[str, str]:
        """A few of the broker's own properties, and ``inter.broker.principals`` (a line each)."""
        ...

    def starting(self, timeout: float) -> None:
        """The settings are read: the broker waits for ``ready`` at most this many seconds more."""
        ...

    def ready(self, live: Sequence[str]) -> None:
        """All plugins stand; these properties can be changed live."""
        ...

    def refuse(self, problem: str) -> None:
        """Stop the broker's start with this sentence."""
        ...

    def closing(self) -> bool:
        """Whether the broker is closing the host."""
        ...

    def configure(self, settings: Settings) -> None:
        """Hand on what the shim needs of the settings."""
        ...

    def take(self, timeout: float) -> Batch:
        """Wait for work, at most this many seconds. Renews the lease."""
        ...

    def known(self, principal: str | None, client_id: str | None) -> Batch:
        """The clients in the table that match; None matches all."""
        ...

    def unresolved(self) -> Batch:
        """The clients in the table whose supplier failed."""
        ...

    def publish(self, batch: Batch, answers: Answers) -> int:
        """Put answers into the table; how many clients differ from before."""
        ...

    def fence(self) -> bool:
        """Whether a fence stands in this JVM that holds a PAUSE."""
        ...

    def client_config(self) -> dict[str, str]:
        """Librdkafka's configuration of a client as this broker itself; holds secrets."""
        ...

    def librdkafka(self, config: Mapping[str, str]) -> dict[str, str]:
        """Librdkafka's form of a Java client's configuration: keystores as PEM, JAAS as user and password.

        Raises:
            Exception: Java's own, where a keystore can't be read.
        """
        ...

    def registered(self) -> dict[int, bool]:
        """Every registered broker, and whether it is fenced; waits."""
        ...

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers; waits."""
        ...

    def offline_log_dirs(self) -> tuple[str, ...]:
        """This broker's log directories that Kafka has given up."""
        ...

    def usage(self, most: int) -> list[ClientUsage]:
        """The busiest clients that have a quota of their own."""
        ...

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show a number."""
        ...

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a number."""
        ...

    def forget(self, type: str, name: str) -> None:
        """Show the numbers of this name no longer."""
        ...

    def set_factor(self, value: float, reason: str) -> None:
        """The factor, 0..1, that holds from now on, and why, in words an operator reads."""
        ...

    def exempt(self, principals: Sequence[str], client_ids: Sequence[str], brokers_anonymous: bool) -> None:
        """Whom the fence never turns back: principals by name, and (if brokers are) ANONYMOUS by client-id."""
        ...

    def verdict(self, ticket: str, problem: str | None) -> None:
        """The answer to a "validate" event."""
        ...

    def plugin(self, name: str) -> None:
        """Show this plugin's error counter."""
        ...

    def plugin_failed(self, name: str) -> None:
        """Count an error of this plugin."""
        ...

    def gauges(self) -> list[Gauge]:
        """All numbers of the shim, now."""
        ...

    def log(self, logger: str, level: int, message: str) -> None:
        """A line for the broker's own log; level as in Python's logging."""
        ...

    def detach(self) -> None:
        """The calling thread ends and will not call the shim again."""
        ...
