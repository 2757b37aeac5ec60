"""Python's end of the protocol: makes calls of ``protocol`` of what the host asks of Java, and values of the answers.

Where Python runs in the broker's own process the shim starts ``serve`` on its host thread (``serve.py`` in the jar);
where it has a process of its own ``child`` makes the same JavaShim with another transport. Python calls Java, never the
other way round: a call from Java into Python would need a proxy, which is slow under contention and leaks in some
versions of JPype. Everything else of the host sees Java through the protocol ``shim.Shim``.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any, Protocol

from quotahost.broker.host.logs import Logs
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import Answers, Batch, ConfigRow, decode, encode, parse
from quotahost.broker.host.protocol import CALLS, VERSION
from quotahost.model import Factor, LogDir, QuotaType
from quotahost.model.volumes import Affected
from quotahost.settings.broker import Settings
from quotahost.throttling import quota_windows

#: The shim's calls take whole milliseconds, Python's settings and clocks are in seconds.
_MILLIS = 1000
#: How many sets of client-ids are remembered, at most; one is enough but where quotas name clients of many users.
_KNOWN_IDS = 4096


class Transport(Protocol):
    """The way of messages to Java and back. Any thread may use it, several at once."""

    def ask(self, message: bytes) -> bytes:
        """Send a call and wait for its answer."""

    def tell(self, message: bytes) -> None:
        """Send a call that has no answer."""

    def detach(self) -> None:
        """The calling thread ends."""


class JavaShim:
    """``quotahost.broker.host.shim.Shim`` by any transport."""

    def __init__(self, transport: Transport) -> None:
        """Introduce this Python.

        Raises:
            ConnectionError: Java speaks another version of the protocol.
        """
        self._transport = transport
        self._known_ids: dict[frozenset[str], bytes] = {}
        self._closing = False
        self.detach = transport.detach
        self._call("hello", VERSION, metadata.version("quotahost"))

    def _call(self, name: str, *arguments: object) -> Any:
        """The answer to a call, or None at once if it has none.

        Raises:
            ConnectionError: Java answers with a problem.
            ValueError: the call has more bytes than it may have; it is not sent.
        """
        call, message = CALLS[name], encode([name, *arguments])
        if len(message) > call.most:
            raise ValueError(f"the call {name} has {len(message):,} bytes, and may have {call.most:,}")
        if not call.waits:
            self._transport.tell(message)
            return None
        problem, answer = decode(self._transport.ask(message))
        if problem is not None:
            raise ConnectionError(problem)
        return answer

    def properties(self) -> dict[str, str]:
        return _pairs(self._call("properties"))

    def broker(self) -> dict[str, str]:
        return _pairs(self._call("broker"))

    def starting(self, timeout: float) -> None:
        self._call("starting", int(timeout * _MILLIS))

    def built(self) -> None:
        self._call("built")

    def ready(self, live: Sequence[str]) -> None:
        self._call("ready", list(live))

    def refuse(self, problem: str) -> None:
        self._call("refuse", problem)

    def verdict(self, ticket: str, problem: str | None) -> None:
        self.answer(ticket, problem or "")

    def restarted(self) -> bool:
        return bool(self._call("restarted"))

    def closing(self) -> bool:
        return self._closing

    def configure(self, settings: Settings, measured: Collection[QuotaType]) -> None:
        newcomers, shadow, topics = settings.newcomers, settings.shadow, settings.topics
        rates = (newcomers.produce, newcomers.fetch, newcomers.request, newcomers.controller_mutation)
        windows, max_mute = quota_windows(self.broker()), settings.max_mute.total_seconds()
        factored = [quota_type.value for quota_type in settings.factor_quota_types]
        self._call(
            "configure",
            [
                settings.clients_max, int(settings.clients_idle.total_seconds()), float(settings.floor_bytes), factored,
                shadow.everything, array("d", map(_rate, rates)), sorted(measured),
            ],
            shadow.names(),
            [windows.number, int(windows.size * _MILLIS), int(max_mute * _MILLIS)],
            settings.pause_creation == "allow",
            [int(settings.validity.total_seconds() * _MILLIS), str(settings.fallback_action)],
            [
                _rate(topics.total), [topic for topic, _ in topics.thresholds],
                array("d", [rate for _, rate in topics.thresholds]), list(settings.spared_topics), topics.reject_error,
                shadow.all_topics, sorted(shadow.topics),
            ],
        )  # fmt: skip

    def take(self, timeout: float) -> Batch:
        number, what, self._closing = self._call("take", int(timeout * _MILLIS))
        return parse(what, number)

    def ask_again(self, principal: str | None, client_id: str | None) -> None:
        self._call("ask_again", principal, client_id)

    def ask_again_the_failed(self) -> None:
        self._call("ask_again_the_failed")

    def publish(self, batch: Batch, answers: Answers) -> int:
        # One call with flat arrays for the whole batch. Java finds the clients by position in its own batch, so no name
        # has to survive the way into Python and back.
        changed = self._call(
            "publish",
            batch.number,
            array("i", answers.rows),
            array("i", answers.codes),
            array("d", answers.rates),
            list(answers.groups),
            array("i", answers.sources),
            list(answers.suppliers),
            array("i", answers.distinct),
            [self._ids(ids) for ids in answers.distinct_ids],
            answers.shadows,
        )
        return int(changed)

    def _ids(self, ids: frozenset[str]) -> bytes:
        """A set on its way, made once: a supplier may return the same large set for every principal."""
        if len(self._known_ids) > _KNOWN_IDS:
            self._known_ids.clear()
        if (known := self._known_ids.get(ids)) is None:
            known = self._known_ids[ids] = encode(sorted(ids))
        return known

    def exempt(self, principals: Sequence[str], client_ids: Sequence[str], internal_client_ids: str) -> None:
        self._call("exempt", list(principals), list(client_ids), internal_client_ids)

    def spare(self, topics: Sequence[str]) -> None:
        self._call("spare", list(topics))

    def fence(self) -> bool:
        return bool(self._call("fence"))

    def keystores(self, ssl: Mapping[str, str]) -> dict[str, str]:
        return _pairs(self._call("keystores", _flat(ssl)))

    def connect(self, client: Mapping[str, str]) -> None:
        self._call("connect", _flat(client))

    def cluster(self) -> tuple[str, dict[int, bool]]:
        cluster_id, brokers = self._call("cluster")
        return cluster_id, dict(brokers)

    def configs(self, type: str, names: Sequence[str]) -> list[ConfigRow]:
        return [ConfigRow(*row) for row in self._call("configs", type, list(names))]

    def registered(self) -> dict[int, bool]:
        return self.cluster()[1]

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        return [LogDir(*row) for row in self._call("log_dirs", array("i", brokers))]

    def offline_log_dirs(self) -> tuple[str, ...]:
        return tuple(self._call("offline_log_dirs"))

    def ask(self, *words: str) -> Any:
        answer = json.loads(self._call("ask", words))
        if isinstance(answer, dict) and "error" in answer:
            raise ConnectionError(answer["error"])
        return answer

    def answer(self, ticket: str, text: str) -> None:
        self._call("answer", ticket, text)

    def held(self, text: str) -> None:
        self._call("held", text)

    def log(self, logger: str, level: int, message: str) -> None:
        self._call("log", logger, level, message)

    def plugin(self, name: str) -> None:
        self.count("Plugin", name, "Errors", 0.0)

    def plugin_failed(self, name: str) -> None:
        self.count("Plugin", name, "Errors")

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        self._call("gauge", type, name, attribute, float(value))

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self._call("count", type, name, attribute, float(by))

    def forget(self, type: str, name: str) -> None:
        self._call("forget", type, name)

    def set_factor(self, value: float, cause: str, affected: Affected | None = None, full: bool = False) -> None:
        whom = None
        if affected is not None:
            topics = list(affected.places)
            whom = [topics, list(affected.places.values()), [topic in affected.held for topic in topics]]
        self._call("set_factor", float(value), cause, whom, full)

    def factor(self) -> Factor:
        return Factor(*self._call("factor"))


class _InProcess:
    """The transport by JPype, where Python runs in the broker's own process: one method of Java's.

    It answers with bytes and throws nothing: JPype makes a Python class of each Java class that it meets, and two
    threads that make one at the same time, or one that does so while the JVM shuts down, crash the broker.
    """

    def __init__(self, jpype: Any) -> None:
        # On the host thread, as the only one: the classes are made here.
        self._call = jpype.JClass("org.quotahost.host.PythonHost").call
        self._thread = jpype.JClass("java.lang.Thread")

    def ask(self, message: bytes) -> bytes:
        return bytes(memoryview(self._call(message)))

    def tell(self, message: bytes) -> None:
        self._call(message)

    def detach(self) -> None:
        with suppress(RuntimeError):  # the JVM has ended, and nothing is attached any more
            self._thread.detach()


def serve() -> None:
    """Run the host in the broker's own process until the broker closes it. The shim calls this on its host thread."""
    import jpype  # here, since a host in a process of its own has no JVM to join

    run(_InProcess(jpype), in_jvm=True)


def run(transport: Transport, in_jvm: bool) -> None:
    """Run the host by this transport until the broker closes it."""
    shim = JavaShim(transport)
    # The log ends last, so that what the host's end logs still arrives.
    with Logs(shim):
        Host(shim, in_jvm=in_jvm).run()


def _rate(rate: float | None) -> float:
    return math.nan if rate is None else rate  # doubles have no null


def _flat(pairs: Mapping[str, str]) -> list[str]:
    return [text for pair in pairs.items() for text in pair]


def _pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
