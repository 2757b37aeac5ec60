"""The only module that knows JPype: Python's end of ``org.quotahost.host.PythonHost``.

The shim starts ``serve`` on its host thread (``serve.py`` in the jar). Python calls Java, never the other way round: a
call from Java into Python would need a proxy, which is slow under contention and leaks in some versions of JPype.
Everything else of the host sees Java through the protocol ``shim.Shim``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import jpype

from quotahost.broker.host.logs import Logs
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import Answers, Batch, ConfigRow, parse
from quotahost.model import Factor, LogDir, QuotaType
from quotahost.model.affected import Affected
from quotahost.settings.broker import Settings
from quotahost.throttling.quota_window import quota_windows

#: The shim's methods take whole milliseconds, Python's settings and clocks are in seconds.
_MILLIS = 1000
#: How many sets of client-ids are remembered, at most; one is enough but where quotas name clients of many users.
_KNOWN_IDS = 4096


class JavaShim:
    """``quotahost.broker.host.shim.Shim`` by way of JPype."""

    def __init__(self) -> None:
        self._host: Any = jpype.JClass("org.quotahost.host.PythonHost").current()
        self._table: Any = self._host.table
        self._strings: Any = jpype.JArray(jpype.JString)
        self._ints: Any = jpype.JArray(jpype.JInt)
        self._doubles: Any = jpype.JArray(jpype.JDouble)
        self._booleans: Any = jpype.JArray(jpype.JBoolean)
        self._ids: Any = jpype.JClass("org.quotahost.table.QuotaTable").clientIds
        self._id_sets: Any = jpype.JArray(jpype.JClass("java.util.Set"))
        self._known_ids: dict[frozenset[str], Any] = {}
        # JPype makes a Python class of each Java class on its first use. All uses begin here, on the host thread: two
        # threads that make one at the same time, or one that does so while the JVM shuts down, crash the broker.
        self._host_thread, self._questions = self._host.thread, self._host.questions
        self._host_questions, self._admin = self._host.hostQuestions, self._host.admin
        self._inbox, self._lease, self._topics = self._host.inbox, self._host.lease, self._host.topicQuotas
        self._gauges: Any = self._host.gauges
        self._fence: Any = jpype.JClass("org.quotahost.fence.Fence")
        self._exemptions: Any = jpype.JClass("org.quotahost.fence.Exemptions")
        self._creation: Any = jpype.JClass("org.quotahost.fence.Creation")
        self._beans: Any = jpype.JClass("org.quotahost.internals.KafkaBeans")
        self._in_force: Any = self._table.factorInForce()
        self._thread: Any = jpype.JClass("java.lang.Thread")
        # A Java exception that crosses to Python becomes a Python class in the same way.
        for name in ("Exception", "RuntimeException", "IllegalArgumentException", "NullPointerException"):
            jpype.JClass(f"java.lang.{name}")
        # Only the host calls it, with arguments that Java takes as they are, so it needs no method here.
        self.log = self._host.log

    def properties(self) -> dict[str, str]:
        return _pairs(self._host.properties())

    def broker(self) -> dict[str, str]:
        return _pairs(self._host.broker())

    def starting(self, timeout: float) -> None:
        self._host_thread.starting(int(timeout * _MILLIS))

    def ready(self, live: Sequence[str]) -> None:
        self._host.ready(self._strings(list(live)))

    def refuse(self, problem: str) -> None:
        self._host_thread.refuse(_unicode(problem))

    def verdict(self, ticket: str, problem: str | None) -> None:
        self._host_questions.answer(ticket, _unicode(problem or ""))

    def restarted(self) -> bool:
        return bool(self._host_thread.restarted())

    def closing(self) -> bool:
        return bool(self._host_thread.closing())

    def configure(self, settings: Settings, measured: Collection[QuotaType]) -> None:
        newcomers, shadow = settings.newcomers, settings.in_shadow
        rates = (newcomers.produce, newcomers.fetch, newcomers.request, newcomers.controller_mutation)
        self._table.configure(
            settings.clients_max,
            int(settings.clients_idle.total_seconds()),
            settings.floor_bytes,
            self._strings([t.value for t in settings.factor_quota_types]),
            shadow.everything,
            # A double[] has no null, so NaN is unlimited.
            self._doubles([math.nan if rate is None else rate for rate in rates]),
            self._strings(sorted(measured)),
        )
        self._table.shadow(self._strings(shadow.names()))
        windows, max_mute = quota_windows(self.broker()), settings.max_mute.total_seconds()
        self._table.configureTap(windows.number, windows.size * _MILLIS, int(max_mute * _MILLIS))
        self._creation.allow(settings.pause_creation == "allow")
        self._lease.configure(int(settings.validity.total_seconds() * _MILLIS), str(settings.fallback_action))
        self._configure_topics(settings)

    def _configure_topics(self, settings: Settings) -> None:
        topics, shadow = settings.topics, settings.in_shadow
        self._topics.configure(
            math.nan if topics.total is None else topics.total,
            self._strings([topic for topic, _ in topics.thresholds]),
            self._doubles([rate for _, rate in topics.thresholds]),
            self._strings(settings.spared_topics),
            topics.reject_error,
            shadow.all_topics,
            self._strings(sorted(shadow.topics)),
        )

    def take(self, timeout: float) -> Batch:
        return _batch(self._host.take(int(timeout * _MILLIS)))

    def ask_again(self, principal: str | None, client_id: str | None) -> None:
        self._table.askAgain(principal and _unicode(principal), client_id and _unicode(client_id))

    def ask_again_the_failed(self) -> None:
        self._table.askAgainTheFailed()

    def publish(self, batch: Batch, answers: Answers) -> int:
        # One call with flat arrays for the whole batch: measured, that takes about 1 us for each client.
        # Java finds the clients by position in its own batch, so no name has to survive the way into Python and back.
        changed = self._table.publish(
            batch.handle,
            self._ints(answers.rows),
            self._ints(answers.codes),
            self._doubles(answers.rates),
            self._strings(_all_unicode(answers.groups)),
            self._ints(answers.sources),
            self._strings(_all_unicode(answers.suppliers)),
            self._ints(answers.distinct),
            self._id_sets([self._java_ids(ids) for ids in answers.distinct_ids]),
            self._strings(_all_unicode(answers.shadows)),
        )
        return int(changed)

    def _java_ids(self, ids: frozenset[str]) -> Any:
        """Java's copy of a set, made once: a supplier may return the same large set for every principal."""
        if len(self._known_ids) > _KNOWN_IDS:
            self._known_ids.clear()
        if (known := self._known_ids.get(ids)) is None:
            known = self._known_ids[ids] = self._ids(self._strings(_all_unicode(ids)))
        return known

    def exempt(self, principals: Sequence[str], client_ids: Sequence[str], internal_client_ids: str) -> None:
        self._exemptions.set(self._strings(list(principals)), self._strings(list(client_ids)), internal_client_ids)

    def spare(self, topics: Sequence[str]) -> None:
        self._exemptions.spare(self._strings(list(topics)))

    def fence(self) -> bool:
        return bool(self._fence.installed())

    def keystores(self, ssl: Mapping[str, str]) -> dict[str, str]:
        return _pairs(_lines(self._host.keystores(self._flat(ssl))))

    def connect(self, client: Mapping[str, str]) -> None:
        self._admin.configure(self._flat(client))

    def cluster(self) -> tuple[str, dict[int, bool]]:
        cluster_id, *rows = _lines(self._admin.brokers())
        pairs = (row.split("\t") for row in rows)
        return cluster_id, {int(broker): fenced == "1" for broker, fenced in pairs}

    def configs(self, type: str, names: Sequence[str]) -> list[ConfigRow]:
        lines = _lines(self._admin.configs(type, self._strings(_all_unicode(names))))
        return [ConfigRow(*line.split("\t", 3)) for line in lines]

    def registered(self) -> dict[int, bool]:
        return self.cluster()[1]

    def _flat(self, pairs: Mapping[str, str]) -> Any:
        return self._strings([text for pair in pairs.items() for text in pair])

    def log_dirs(self, brokers: Sequence[int]) -> list[LogDir]:
        rows = (str(row).split("\t") for row in _lines(self._admin.logDirs(self._ints(list(brokers)))))
        return [LogDir(int(b), path, _size(total), _size(usable), error) for b, path, total, usable, error in rows]

    def offline_log_dirs(self) -> tuple[str, ...]:
        return tuple(str(path) for path in self._beans.offlineLogDirs())

    def ask(self, *words: str) -> Any:
        answer = json.loads(str(self._questions.answer(self._strings(_all_unicode(words)))))
        if isinstance(answer, dict) and "error" in answer:
            raise ConnectionError(answer["error"])
        return answer

    def answer(self, ticket: str, text: str) -> None:
        self._host_questions.answer(ticket, _unicode(text))

    def held(self, text: str) -> None:
        self._questions.held(_unicode(text))

    def plugin(self, name: str) -> None:
        self.count("Plugin", name, "Errors", 0.0)

    def plugin_failed(self, name: str) -> None:
        self.count("Plugin", name, "Errors")

    # Plugins call these three, and may pass arguments by name, which a Java method doesn't take.

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        self._gauges.set(type, _unicode(name), attribute, value)

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self._gauges.count(type, _unicode(name), attribute, by)

    def forget(self, type: str, name: str) -> None:
        self._gauges.forget(type, _unicode(name))

    def set_factor(self, value: float, cause: str, affected: Affected | None = None, full: bool = False) -> None:
        self._creation.full(full)
        if affected is None:
            self._table.factor(value, _unicode(cause))
            return
        topics = list(affected.places)
        self._table.factor(
            value,
            _unicode(cause),
            self._strings(_all_unicode(topics)),
            self._strings(_all_unicode(affected.places.values())),
            self._booleans([topic in affected.held for topic in topics]),
        )

    def factor(self) -> Factor:
        last = self._in_force.hostFactor()
        return Factor(float(last.value()), str(last.cause()))

    def detach(self) -> None:
        with suppress(RuntimeError):  # the JVM has ended, and nothing is attached any more
            self._thread.detach()


def serve() -> None:
    """Run the host until the broker closes it. The shim calls this on its host thread."""
    shim = JavaShim()
    # The log ends last, so that what the host's end logs still arrives.
    with Logs(shim):
        Host(shim).run()


def _unicode(text: str) -> str:
    """The text as Java can take it: half a surrogate pair, as in names of files that are not UTF-8, is escaped.

    JPype raises an exception for one, and what a plugin writes in a cause or a group must not end the host.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _all_unicode(texts: Iterable[str]) -> list[str]:
    return [_unicode(text) for text in texts]


def _pairs(flat: Any) -> dict[str, str]:
    # JPype starts without convertStrings (bootstrap.py), so Java's strings arrive as Java objects.
    texts = [str(text) for text in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _lines(reply: Any) -> list[str]:
    """The lines of an org.quotahost.util.Reply after the first, which is a problem or "".

    Raises:
        ConnectionError: Java reports a problem.
    """
    # Java sends a text and no exception: JPype would make a Python class of the exception's class on this thread,
    # and that crashes a JVM which is shutting down.
    problem, *rest = (str(line) for line in reply)
    if problem:
        raise ConnectionError(problem)
    return rest


def _size(text: str) -> int | None:
    return None if text == "-1" else int(text)  # -1: the broker doesn't report it (ClusterAdmin.logDirs)


def _batch(java: Any) -> Batch:
    return parse(bytes(memoryview(java.bytes())), java)
