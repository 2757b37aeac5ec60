"""``Shim`` makes the host's calls into the broker's JVM, and declares each call once, beside the method that makes it.

Python makes every call, and Java answers (``org.quotahost.host.Calls``). A call is a list of its name and its
arguments, which ``messages.encode`` turns into bytes. An answer is JSON: a list of a problem (or null) and the value. A
transport carries the bytes: JPype if Python runs in the broker's own process, two pipes if Python has a process of its
own (``bridge``). Java never calls Python: such a call would need a JPype proxy, which is slow under contention and
leaks in some versions.

The jar contains this declaration (``resource``), so that Java gets the version, the limit and the names from here.
``docs/reference/host-protocol.md`` shows it. VERSION grows with every change that an older side would not understand:
Java refuses a Python of another version at its first call.
"""

import inspect
import json
import math
import socket
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import Any, Final, Protocol, TypeVar

from quotahost.api.broker import texts
from quotahost.broker.host.messages import Batch, ConfigRow, Event, Row, Scoped, encode, gauges, numbers_of
from quotahost.model import Client, Factor, Load, LogDir, QuotaType
from quotahost.model.volumes import Affected, SlowedBudget
from quotahost.settings.broker import Settings
from quotahost.settings.properties import rates_of
from quotahost.throttling import quota_windows

VERSION: Final = 5

MOST: Final = 64 * 1024 * 1024  # the most bytes of a call or its answer

_MILLIS: Final = 1000  # calls take whole milliseconds; Python's settings and clocks are in seconds

#: Java caches each set by its bytes. If 50,000 client-ids have quotas, each batch has their set: 25 ms of encoding.
_client_ids: Final = lru_cache(2)(lambda ids: encode(sorted(ids)))

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Call:
    """The declaration of one call."""

    doc: str  # what the call does
    arguments: str = ""  # names and types in order; a list's members are in brackets
    answer: str = ""  # the type; "" if there is no answer
    waits: bool = True  # whether the caller waits for the answer, or for the end of the call if there is none


CALLS: Final = {
    "hello": Call("The first call: tell Java the protocol's and quotahost's version.", "version: long, quotahost: text")
}


def _declare(arguments: str = "", answer: str = "", *, waits: bool = True) -> Callable[[Method], Method]:
    """Declare the call that a method of Shim makes: its name, and the first paragraph of its docstring."""

    def declare(method: Method) -> Method:
        doc = " ".join((inspect.getdoc(method) or "").partition("\n\n")[0].split())
        CALLS[method.__name__] = Call(doc, arguments, answer, waits)
        return method

    return declare


class Transport(Protocol):
    """Carries messages to Java and back. Several threads may use it at the same time."""

    def ask(self, message: bytes) -> bytes:
        """Send a call and wait for its answer."""

    def tell(self, message: bytes) -> None:
        """Send a call that has no answer."""


class Shim:
    """All calls to Java. In unit tests ``tests.fakes.shim.FakeShim`` stands in for this class.

    Any thread may ask about the cluster and this broker, show metrics (plugins do so by ``Context.broker`` and
    ``Context.metrics``), answer events, and log. Only the host thread may make the other calls. A call raises
    ConnectionError if Java answers with a problem or can't be reached, and ValueError if it has too many bytes.
    """

    def __init__(self, transport: Transport) -> None:
        """Call ``hello``, on the host thread. Raises ConnectionError if Java has another protocol version."""
        self._transport = transport
        self._unreached = ""  # the cluster's addresses, until one of them has accepted a connection
        self._call("hello", VERSION, metadata.version("quotahost"))

    def _call(self, name: str, *arguments: object) -> Any:
        """Make a call. Return its answer, or None at once if the call doesn't wait."""
        call, message = CALLS[name], encode([name, *arguments])
        if len(message) > MOST:
            raise ValueError(f"the call {name} has {len(message):,} bytes, and may have {MOST:,}")
        if not call.waits:
            self._transport.tell(message)
            return None
        problem, answer = json.loads(self._transport.ask(message))
        if problem is not None:
            raise ConnectionError(problem)
        return answer

    # ---- the host's start ----

    @_declare(answer="{name: value}")
    def properties(self) -> dict[str, str]:
        """The properties under ``client.quota.callback.`` with which this host must start, including secrets."""
        return dict(self._call("properties"))

    @_declare(answer="{name: value}")
    def started_with(self) -> dict[str, str]:
        """These properties as of the broker's start: a property that isn't live keeps this value."""
        return dict(self._call("started_with"))

    @_declare(answer="{name: value}")
    def broker(self) -> dict[str, str]:
        """The broker's own properties about its roles, disks, quota windows and connections, including secrets."""
        return dict(self._call("broker"))

    @_declare()
    def starting(self) -> None:
        """Tell Java that the settings are valid and the host now builds the plugins: the broker waits as long again."""
        self._call("starting")

    @_declare()
    def built(self) -> None:
        """Tell Java that all plugins are built. A host that replaces another one waits here until that host has ended.

        Before this call returns, the new host must not do anything that the other host could notice.
        """
        self._call("built")

    @_declare("asked: [text], given: [name, value, ...: text]")
    def ready(self, asked: Sequence[str], given: Mapping[str, str]) -> None:
        """Let the broker go on: the properties ``given`` are in force, and Kafka asks about a change of ``asked``.

        The next host starts with the properties that were in force last.
        """
        self._call("ready", list(asked), _flat(given))

    @_declare("problem: text")
    def refuse(self, problem: str) -> None:
        """Stop the broker's start with this text as the error. If the broker has started already, it logs the text."""
        self._call("refuse", problem)

    @_declare(answer="bool")
    def restarted(self) -> bool:
        """Whether another Python host has run in this JVM before this one, so that the broker has started already."""
        return bool(self._call("restarted"))

    @_declare(
        "table: [clients_max: long, idle_seconds: long, floor_bytes: double, factored: [text], newcomers: doubles, "
        "measured: [text]], shadow: [text], "
        "tap: [windows: long, window_ms: long, max_mute_ms: long], creation_allowed: bool, "
        "lease: [validity_ms: long, fallback: text], topics: [total: double, "
        "names: [text], rates: doubles, spared: [text], error: text]"
    )
    def configure(self, settings: Settings, measured: Collection[QuotaType]) -> None:
        """Send the settings that Java itself applies."""
        topics, rates = settings.topics, rates_of(settings.newcomers).values()
        windows, max_mute = quota_windows(self.broker()), settings.max_mute.total_seconds()
        factored = [quota_type.value for quota_type in settings.factor_quota_types]
        self._call(
            "configure",
            [
                settings.clients_max, int(settings.clients_idle.total_seconds()), float(settings.floor_bytes), factored,
                array("d", map(_rate, rates)), sorted(measured),
            ],
            settings.shadow.names(),
            [windows.number, int(windows.size * _MILLIS), int(max_mute * _MILLIS)],
            settings.pause_creation == "allow",
            [int(settings.validity.total_seconds() * _MILLIS), str(settings.fallback_action)],
            [
                _rate(topics.total), [topic for topic, _ in topics.thresholds],
                array("d", [rate for _, rate in topics.thresholds]), list(settings.spared_topics), topics.reject_error,
            ],
        )  # fmt: skip

    # ---- the loop ----

    @_declare("timeout_ms: long", "[clients: [[principal, client_id]], events: [[kind, fields: list]], closing: bool]")
    def take(self, timeout: float) -> Batch:
        """Wait for work, for ``timeout`` at most, and take it. This renews the lease."""
        clients, events, closing = self._call("take", int(timeout * _MILLIS))
        of_events = [Event(kind, tuple(fields)) for kind, fields in events]
        return Batch(list(map(Client._make, clients)), of_events, closing)

    @_declare("principal: text or null, client_id: text or null")
    def ask_again(self, principal: str | None, client_id: str | None) -> None:
        """Have ``take`` return the table's clients with these names again. None matches every name."""
        self._call("ask_again", principal, client_id)

    @_declare()
    def ask_again_the_failed(self) -> None:
        """Have ``take`` return again the clients for which a supplier failed."""
        self._call("ask_again_the_failed")

    @_declare(
        "numbers: ints, rows: [[answers: [[scope: long, rate: double or null, group: text, supplier: text]], "
        "distinct: long, shadow: text]], distinct_ids: [bytes, each a list of texts]"
    )
    def publish(self, numbers: Sequence[int], rows: Iterable[Row], distinct_ids: Iterable[frozenset[str]]) -> None:
        """Put the answers for the last batch into the table: the number of the row of each client, in order."""
        # One call for the whole batch. Java finds the clients by their position in its own batch, so a name need not be
        # the same after its way into Python and back.
        self._call("publish", array("i", numbers), list(rows), list(map(_client_ids, distinct_ids)))

    @_declare(answer="bool")
    def fence(self) -> bool:
        """Whether this JVM has a fence, which turns produce requests back in a PAUSE."""
        return bool(self._call("fence"))

    # ---- the cluster and this broker ----

    @_declare("ssl: [name, value, ...: text]", "{name: value}")
    def keystores(self, ssl: Mapping[str, str]) -> dict[str, str]:
        """The content of the keystores that properties ``ssl.*`` name (``kafka.listeners.Keystores``)."""
        return dict(self._call("keystores", _flat(ssl)))

    @_declare("client: [name, value, ...: text]", waits=False)
    def connect(self, client: Mapping[str, str]) -> None:
        """Set the configuration of the Java client that asks the cluster; empty if there is none."""
        self._call("connect", _flat(client))
        self._unreached = client.get("bootstrap.servers", "")

    def _ask_cluster(self, name: str, *arguments: object) -> Any:
        # At a start the cluster can't be reached yet, and Java's client would log a warning each second.
        if self._unreached:
            _reach(self._unreached)
            self._unreached = ""
        return self._call(name, *arguments)

    @_declare(answer="[cluster_id: text, [[broker: long, fenced: bool]]]")
    def cluster(self) -> tuple[str, dict[int, bool]]:
        """The cluster's id, every registered broker's id, and whether it is fenced; waits for the cluster."""
        cluster_id, brokers = self._ask_cluster("cluster")
        return cluster_id, dict(brokers)

    @_declare("type: text, names: [text]", "[[owner, name, source, value: text]]")
    def configs(self, type: str, names: Sequence[str]) -> list[ConfigRow]:
        """All properties of these TOPICs or BROKERs; waits for the cluster. A topic that doesn't exist has none."""
        return [ConfigRow(*row) for row in self._ask_cluster("configs", type, list(names))]

    @_declare("brokers: ints", "[[broker: long, path: text, total: long or null, usable: long or null, error: text]]")
    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        """The log directories of these brokers; waits for the brokers."""
        return [LogDir(*row) for row in self._ask_cluster("log_dirs", array("i", brokers))]

    @_declare("directories: [text]", "[text]")
    def offline_log_dirs(self, directories: Sequence[str]) -> tuple[str, ...]:
        """The log directories of this broker that Kafka has marked offline."""
        return tuple(self._call("offline_log_dirs", list(directories)))

    @_declare("topics: [text], partitions: ints", "[twice the bytes, and 1 more of a leader: long]")
    def replicas(self, replicas: Sequence[tuple[str, int]]) -> list[tuple[int, bool] | None]:
        """The bytes of each replica on this broker, and whether it leads; below 0 if the broker doesn't have it."""
        partitions = array("i", (partition for _, partition in replicas))
        sizes = self._call("replicas", [topic for topic, _ in replicas], partitions)
        return [None if size < 0 else (size >> 1, bool(size & 1)) for size in sizes]

    @_declare("words: [text]", "JSON")
    def ask(self, *words: str) -> Any:
        """Java's answer to a question, decoded from JSON (``quotahost.broker.host.dump``)."""
        answer = self._call("ask", words)
        if isinstance(answer, dict) and "error" in answer:
            raise ConnectionError(answer["error"])
        return answer

    # ---- answers to Java's events ----

    @_declare("ticket: text, answer: text or list")
    def answer(self, ticket: str, answer: object) -> None:
        """Answer an event that has a ticket, in the form that the event asks for."""
        self._call("answer", ticket, answer)

    @_declare("text: text", waits=False)
    def held(self, text: str) -> None:
        """Keep a JSON text in Java about the clients that rules in shadow would hold back; ``state`` contains it."""
        self._call("held", text)

    # ---- metrics ----

    @_declare("type: text, name: text, attribute: text, value: double", waits=False)
    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        """Set a number that the metrics show."""
        self._call("gauge", *texts(type, name, attribute), float(value))

    @_declare("type: text, name: text, attribute: text, by: double", waits=False)
    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        """Add to a number that the metrics show."""
        self._call("count", *texts(type, name, attribute), float(by))

    @_declare("type: text, name: text", waits=False)
    def forget(self, type: str, name: str) -> None:
        """Stop showing the numbers of this name."""
        self._call("forget", *texts(type, name))

    def left(self, type: str) -> Mapping[str, Mapping[str, float]]:
        """The numbers of this type, by name and attribute, that the host before this one has left in the metrics."""
        return numbers_of(gauges(self.ask), type)

    def forget_left(self, *types: str) -> None:
        """Stop showing the numbers of these types that the host before this one has left in the metrics."""
        for type, name in {(each.type, each.name) for each in gauges(self.ask) if each.type in types}:
            self.forget(type, name)

    # ---- the factor, and who is exempt from it ----

    @_declare(answer="the arguments of set_factor")
    def factor(self) -> Scoped:
        """The factor that was set last, possibly by the host before this one, and the clients that it is for."""
        value, cause, by_topics, topics, places, held, full = self._call("factor")
        affected = Affected(dict(zip(topics, places, strict=True)), frozenset(held)) if by_topics else None
        return Scoped(Factor(value, cause), affected, full)

    @_declare("value: double, cause: text, by_topics: bool, topics: [text], places: [text], held: [text], full: bool")
    def set_factor(self, new: Scoped) -> None:
        """Set the factor from 0 to 1, its cause in words for an operator, and the topics whose writers it is for.

        If ``full``, a volume is known to be full, and new topics and partitions may be refused, too.
        """
        factor, whom = new.factor, new.affected or Affected({}, frozenset())
        of_topics = [new.affected is not None, list(whom.places), list(whom.places.values()), list(whom.held)]
        self._call("set_factor", float(factor.value), factor.cause, *of_topics, new.full)

    @_declare("budgets: [[name: text, factor: double, place: text, error: text, topics: [text]]]")
    def set_budgets(self, budgets: Sequence[SlowedBudget]) -> None:
        """Set the budgets with factors below 1. They apply to the writers of the budgets' topics, beside the factor.

        If a topic has several factors, the smallest applies.
        """
        self._call("set_budgets", [[b.name, float(b.factor), b.place, b.error, list(b.topics)] for b in budgets])

    @_declare("factors: doubles, causes: [text]")
    def set_factors_of_types(self, factors: Mapping[QuotaType, Factor]) -> None:
        """Set factors above 0, up to 1, for single quota types, and 1 for others. A type's smallest factor applies."""
        of_types = [factors.get(quota_type, Factor(1.0)) for quota_type in QuotaType]
        self._call("set_factors_of_types", array("d", (f.value for f in of_types)), [f.cause for f in of_types])

    @_declare("", "[at_ns: long, handlers_idle_ns: long, queued: long, network_idle_ns: {listener: double}]")
    def load(self) -> Load:
        """How long this broker's threads have been idle, by Kafka's own counters."""
        at_ns, handlers, queued, waited = self._call("load")
        return Load(at_ns, handlers, {listener: int(ns) for listener, ns in waited.items()}, queued)

    @_declare("principals: [name, reason, ...: text], client_ids: [text], internal_client_ids: text")
    def exempt(self, principals: Mapping[str, str], client_ids: Sequence[str], internal_client_ids: str) -> None:
        """Set the exempt clients, which have no quota and which the fence never turns back.

        They are principals of the type User, and ANONYMOUS clients by client-id or by its pattern ("" for none).
        """
        self._call("exempt", _flat(principals), list(client_ids), internal_client_ids)

    @_declare("topics: [text]")
    def spare(self, topics: Sequence[str]) -> None:
        """Set the topics to which the fence lets everybody write."""
        self._call("spare", list(topics))

    @_declare("logger: text, level: long, message: text")
    def log(self, logger: str, level: int, message: str) -> None:
        """Write a line to the broker's own log. The level is that of Python's logging. The log may block."""
        self._call("log", logger, level, message)


def _rate(rate: float | None) -> float:
    return math.nan if rate is None else rate  # doubles have no null


def _reach(addresses: str) -> None:
    """Raises ConnectionError if none of these addresses ("host:port,...") accepts a connection."""
    problem: Exception | None = None
    for address in addresses.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        except (OSError, ValueError) as failure:
            problem = failure
        else:
            return
    raise ConnectionError(f"{addresses}: {problem}")


def _flat(pairs: Mapping[str, str]) -> list[str]:
    return [text for pair in pairs.items() for text in pair]


# ---- the declaration for Java, and for readers -----------------------------------------------------------------


def resource() -> str:
    """The declaration for Java, a properties file: version, limit, names of all calls, and calls that don't wait."""
    told = (name for name, call in CALLS.items() if not call.waits)
    return f"version={VERSION}\nmost={MOST}\ncalls={' '.join(CALLS)}\ntold={' '.join(told)}\n"
