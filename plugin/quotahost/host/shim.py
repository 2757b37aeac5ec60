"""The Java half as the host sees it: a Protocol, so that the host runs without a JVM in tests.

``bridge.JavaShim`` implements it in a broker, ``tests.fakes.shim.FakeShim`` in unit tests. The values that go through
it are in ``messages``. Methods from ``client_config`` to ``forget`` are also what plugins reach by ``Context.broker``
and ``Context.metrics``, from any thread; the others are for the host alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from quotahost.host.messages import Answers, Batch
from quotahost.model import Factor, LogDir, QuotaType
from quotahost.model.affected import Affected
from quotahost.settings.broker import Settings


class Shim(Protocol):
    """The calls that the host makes into Java."""

    def properties(self) -> dict[str, str]:
        """The broker properties under ``client.quota.callback.`` that were confirmed last, secrets included."""

    def broker(self) -> dict[str, str]:
        """A few of the broker's own properties, and ``inter.broker.principals`` (a line each)."""

    def starting(self, timeout: float) -> None:
        """The settings are valid: the broker waits for ``ready`` at most this many seconds more."""

    def ready(self, live: Sequence[str]) -> None:
        """All plugins are built, and the broker may go on; these properties can be changed live."""

    def refuse(self, problem: str) -> None:
        """Stop the broker's start with this text as the error; the broker logs it if it has started already."""

    def restarted(self) -> bool:
        """Whether the broker has started already, and so another Python host of this JVM came before this one."""

    def closing(self) -> bool:
        """Whether the broker is closing the host."""

    def configure(self, settings: Settings, measured: Collection[QuotaType]) -> None:
        """Hand over those settings that Java itself applies.

        ``measured`` are the types for which clients without a quota are measured one by one.
        """

    def take(self, timeout: float) -> Batch:
        """Wait for work, at most this many seconds. Renews the lease."""

    def ask_again(self, principal: str | None, client_id: str | None) -> None:
        """Have ``take`` bring those once more who are in the table with these names; None matches all."""

    def ask_again_the_failed(self) -> None:
        """The same for those for whom a supplier failed."""

    def publish(self, batch: Batch, answers: Answers) -> int:
        """Put answers into the table, and return for how many clients they differ from before."""

    def fence(self) -> bool:
        """Whether this JVM has a fence, which turns produce requests back during a PAUSE."""

    def client_config(self) -> dict[str, str]:
        """The librdkafka configuration of a client that connects as this broker itself; it contains secrets."""

    def librdkafka(self, config: Mapping[str, str]) -> dict[str, str]:
        """A Java client's configuration in librdkafka's names: keystores as PEM, JAAS as user and password.

        Raises:
            ConnectionError: a keystore can't be read.
        """

    def registered(self) -> dict[int, bool]:
        """Every registered broker by its id, and whether it is fenced; waits for the cluster."""

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers; waits for them."""

    def offline_log_dirs(self) -> tuple[str, ...]:
        """This broker's log directories that Kafka has marked offline."""

    def ask(self, *words: str) -> Any:
        """What Java answers to a question, its JSON as Python's values (``quotahost.host.dump``, ``looks``).

        Raises:
            ConnectionError: Java can't answer it.
        """

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show a number."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a number."""

    def forget(self, type: str, name: str) -> None:
        """No longer show the numbers of this name."""

    def factor(self) -> Factor:
        """The factor that was set last, maybe by a host before this one."""

    def set_factor(self, value: float, cause: str, affected: Affected | None = None) -> None:
        """The factor from 0 to 1 that applies from now on, its cause in words for an operator, and whom it is for.

        ``affected``: only clients that write to these topics; None: all clients.
        """

    def exempt(self, principals: Sequence[str], client_ids: Sequence[str], internal_client_ids: str) -> None:
        """Whom the fence never turns back.

        Args:
            principals: names of principals of the type User.
            client_ids: of clients that are ANONYMOUS.
            internal_client_ids: forms of further client-ids of clients that are ANONYMOUS, "" for none.
        """

    def spare(self, topics: Sequence[str]) -> None:
        """The topics that the fence lets everybody write to."""

    def verdict(self, ticket: str, problem: str | None) -> None:
        """Answer a "validate" or "reconfigure" event: None, or why the properties are refused.

        None confirms a "reconfigure": these are the properties with which a host starts that follows this one.
        """

    def plugin(self, name: str) -> None:
        """Show this plugin's error counter."""

    def plugin_failed(self, name: str) -> None:
        """Count an error of this plugin."""

    def log(self, logger: str, level: int, message: str) -> None:
        """Write a line to the broker's own log; the level as in Python's logging."""

    def detach(self) -> None:
        """The calling thread ends and will not call the shim again."""
