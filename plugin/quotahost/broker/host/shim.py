"""The Java half as the host sees it: a Protocol, so that the host runs without a JVM in tests.

``bridge.JavaShim`` implements it in a broker, ``tests.fakes.shim.FakeShim`` in unit tests. The values that go through
it are in ``messages``. Methods from ``registered`` to ``forget`` are also what plugins reach by ``Context.broker``
and ``Context.metrics``, from any thread; the others are for the host alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from quotahost.broker.host.messages import Answers, Batch, ConfigRow
from quotahost.model import Factor, LogDir, QuotaType
from quotahost.model.volumes import Affected
from quotahost.settings.broker import Settings


class Shim(Protocol):
    """The calls that the host makes into Java."""

    def properties(self) -> dict[str, str]:
        """The properties under ``client.quota.callback.`` with which this host has to start, secrets included."""

    def broker(self) -> dict[str, str]:
        """The broker's own properties that say what it is and how brokers and clients connect; they contain secrets."""

    def starting(self, timeout: float) -> None:
        """The settings are valid: the broker waits for ``ready`` at most this many seconds more."""

    def built(self) -> None:
        """All plugins are built. A host that is to follow another one waits here until that one has ended.

        Until then it must not have done anything that the other one could notice.
        """

    def ready(self, live: Sequence[str]) -> None:
        """All plugins are built, and the broker may go on; these properties can be changed live."""

    def refuse(self, problem: str) -> None:
        """Stop the broker's start with this text as the error; the broker logs it if it has started already."""

    def restarted(self) -> bool:
        """Whether the broker has started already, and so another Python host of this JVM came before this one."""

    def closing(self) -> bool:
        """Whether the host has to end: with the batch that was taken last the shim has said so."""

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

    def keystores(self, ssl: Mapping[str, str]) -> dict[str, str]:
        """What the keystores hold that properties ``ssl.*`` name (``connections.librdkafka.Keystores``).

        Raises:
            ConnectionError: one can't be read.
        """

    def connect(self, client: Mapping[str, str]) -> None:
        """As whom the four questions below are asked: a Java client's configuration, empty if there is none."""

    def cluster(self) -> tuple[str, dict[int, bool]]:
        """The cluster's id and what ``registered`` returns; waits for the cluster."""

    def configs(self, type: str, names: Sequence[str]) -> list[ConfigRow]:
        """All properties of these TOPICs or BROKERs; waits for the cluster. A topic that doesn't exist has none."""

    def registered(self) -> dict[int, bool]:
        """Every registered broker by its id, and whether it is fenced; waits for the cluster."""

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers; waits for them."""

    def offline_log_dirs(self) -> tuple[str, ...]:
        """This broker's log directories that Kafka has marked offline."""

    def ask(self, *words: str) -> Any:
        """What Java answers to a question, its JSON as Python's values (``quotahost.broker.host.dump``, ``looks``).

        Raises:
            ConnectionError: Java can't answer it.
        """

    def answer(self, ticket: str, text: str) -> None:
        """Answer an event that has a ticket: "question" in JSON, "clients-table" as ``host.client_table`` writes it."""

    def held(self, text: str) -> None:
        """Keep a JSON text in Java that says whom rules in shadow would hold back, and hand it out with the state."""

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Show a number."""

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a number."""

    def forget(self, type: str, name: str) -> None:
        """No longer show the numbers of this name."""

    def factor(self) -> Factor:
        """The factor that was set last, maybe by a host before this one."""

    def set_factor(self, value: float, cause: str, affected: Affected | None = None, full: bool = False) -> None:
        """The factor from 0 to 1 that applies from now on, its cause in words for an operator, and whom it is for.

        ``affected``: only clients that write to these topics; None: all clients. ``full``: a volume is known to be at
        its hard limit, so topics and partitions may be refused, too.
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
