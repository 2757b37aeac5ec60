"""Whom suppliers and the factor would hold back while they are in shadow, and by how much, for the metrics and ``top``.

1. A rule in shadow is computed and not enforced (the property ``shadow``). ``new_clients`` leaves a
   supplier in shadow out of the answers in force, and puts beside them what it would give.
2. A thread compares once a second what Kafka measures with what the rules would let through (``comparison``). No
   request waits for it.
3. The metrics show how many scopes each rule would hold back now, and counters add up for how long and by how many
   bytes (``Shadow.look``). Java gets the scopes themselves, for ``explain`` and ``top``.

Thresholds of topics are Java's (``org.quotahost.topics``).
"""

import gc
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import nlargest
from typing import Final

from quotahost.background import LoggedOnce, Periodic, StartThread, start_daemon
from quotahost.broker.host.comparison import FACTOR, Comparison, Count, Key, compare
from quotahost.broker.host.protocol import Shim
from quotahost.model import QuotaType
from quotahost.settings.broker import Settings
from quotahost.settings.properties import rates_of
from quotahost.settings.types import SUPPLIER

_log = logging.getLogger("quotahost.host")

EVERY: Final = 1.0  # seconds from one look to the next
#: With so many clients that a look takes long, the pause is this many times as long: a tenth of a core at most.
PAUSE_PER_LOOK: Final = 9
#: Seconds. After a longer pause that was not planned nobody knows for how much of it a client was over a limit.
LONGEST: Final = 10.0
#: How many scopes of each type Java is told of, for ``explain`` and ``top``: those that are furthest beyond.
TOLD: Final = 1000
_TYPE: Final = "Shadow"


class Shadow:
    """Looks while a supplier or the factor is in shadow, shows what it finds, and adds it up.

    Java keeps the numbers, so they go on over a change of the settings and over a restart of the host.
    """

    def __init__(
        self, shim: Shim, clock: Callable[[], float] = time.monotonic, start_thread: StartThread | None = None
    ) -> None:
        """``clock`` in seconds, monotonic. The thread starts with the first rule in shadow."""
        self._shim, self._clock = shim, clock
        self._start_thread = start_thread or partial(start_daemon, at_end=shim.detach)
        self._rules: Sequence[str] = ()
        self._thread: Periodic | None = None
        self._shown: set[str] = set()
        self._newcomers: Mapping[QuotaType, float | None] = {}
        self._text: str | None = None  # what Java was told last; None before the first look
        # By scope, the rate that the factor multiplies where a quota is unlimited: as it was when the factor fell.
        self._stand_ins: dict[Key, float | None] = {}
        self._asked: dict[Key, float | None] = {}  # those that the look that goes on asks for
        self._looked_at: float | None = None  # None before the first look since a rule is in shadow
        self._pause = EVERY
        self._fault = LoggedOnce(_log)

    def configure(self, settings: Settings) -> None:
        self._newcomers = rates_of(settings.newcomers)
        self._rules = [rule for rule in settings.shadow.names() if _is_ours(rule)]
        if self._thread:
            self._thread.wake()
        elif self._rules or self._shim.restarted():
            self._thread = Periodic("shadow", self._work, lambda: self._pause, self._start_thread)

    def close(self) -> None:
        if self._thread:
            self._thread.close()

    # ---- the thread ----

    def _work(self) -> None:
        began = self._clock()
        try:
            self.look()
        except ConnectionError as error:
            self._fault.report("What rules in shadow would do can't be compared now (%s)", error)
        except Exception:  # of JPype's, too, while the JVM shuts down; the thread must outlive it
            self._fault.report("What rules in shadow would do can't be compared now", exc_info=True)
        else:
            self._fault.healed()
        took = self._clock() - began
        self._pause = max(EVERY - took, PAUSE_PER_LOOK * took) if self._rules else float("inf")

    def look(self) -> None:
        rules, now = self._rules, self._clock()
        since = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now if rules else None
        seconds = since if since <= max(LONGEST, 2 * self._pause) else 0.0
        if self._text is None:
            # What a Python host before this one has shown nobody else would take back.
            gauges = self._shim.ask("gauges")
            self._shown = {name for kind, name, *_ in gauges if kind == _TYPE and _is_ours(name)}
        comparison = self._compare() if rules else Comparison()
        if not rules:
            self._stand_ins = {}
        # A rule in shadow is shown from the first look on, though nobody is held back.
        self._show({*rules, *comparison.counts}, comparison.counts, seconds)
        if (text := _told(comparison.held)) != self._text:
            self._shim.held(text)
            self._text = text

    def _compare(self) -> Comparison:
        self._asked = {}
        # All that is made of Java's answers goes again with them. To the collector it would look like a growing heap:
        # with 10,000 clients half of the time went there.
        gc.disable()
        try:
            comparison = compare(self._shim.ask, self._stand_in)
        finally:
            gc.enable()
        # Forgotten are those for which nobody asks any more: a factor of 1, a client that is gone.
        self._stand_ins = self._asked
        return comparison

    def _stand_in(self, key: Key, rate: float, floor: float) -> float | None:
        """The measured rate if it is no less than the floor, else the newcomers' rate: as for a factor in force."""
        known = key in self._stand_ins
        instead = self._stand_ins[key] if known else rate if rate >= floor else self._newcomers.get(key[0])
        self._asked[key] = instead
        return instead

    def _show(self, rules: Iterable[str], counts: Mapping[str, Count], seconds: float) -> None:
        for rule in rules:
            if rule not in self._shown:
                self._shown.add(rule)
                for attribute in ("Seconds", "Bytes"):
                    self._shim.count(_TYPE, rule, attribute, 0.0)
        for rule in self._shown:
            count = counts.get(rule, Count())
            self._shim.gauge(_TYPE, rule, "Over", float(count.over))
            self._shim.gauge(_TYPE, rule, "Unmeasured", float(count.unmeasured))
            if count.over and seconds:
                self._shim.count(_TYPE, rule, "Seconds", count.over * seconds)
                self._shim.count(_TYPE, rule, "Bytes", count.beyond * seconds)


def _is_ours(rule: str) -> bool:
    return rule == FACTOR or rule.startswith(SUPPLIER)


def _told(held: Mapping[Key, tuple[str, float]]) -> str:
    """By quota type, [user tag, client-id tag, rule] of each scope that would be held back, as JSON in ASCII."""
    scopes: dict[str, list[tuple[float, str, str, str]]] = {}
    for (quota_type, tags), (rule, beyond) in held.items():
        scopes.setdefault(quota_type, []).append((beyond, *tags, rule))
    # Sorted by name, so that the text is the same as long as the same scopes are held.
    told = {name: sorted(row[1:] for row in nlargest(TOLD, rows)) for name, rows in sorted(scopes.items())}
    return json.dumps(told, separators=(",", ":"))
