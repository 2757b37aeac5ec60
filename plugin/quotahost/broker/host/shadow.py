"""Whom suppliers or the factor in shadow would hold back, and by how much, for metrics, ``top`` and ``explain``.

A rule in shadow is computed and not enforced (the property ``shadow``). ``new_clients`` leaves a supplier in shadow out
of the answers in force, and puts beside them what it would give. Thresholds of topics are Java's
(``org.quotahost.topics``).

1. A thread asks Java once a second (``Shadow.look``); no request waits for it. Java says what holds for all
   (``state``), and for each quota type which clients have which metric tags, what Kafka measures for these, and what
   suppliers in shadow would give the clients (``holders``).
2. Rows with the same tags make one ``_Use``, since Kafka measures by tags.
3. Each rule is judged as if it alone were put in force, and what counts is the rate beyond its limit, as for Kafka
   itself: the quotas with ``shadow=all``, the factor, and each supplier in shadow (``compare``).
4. What Kafka measures belongs to a scope of a supplier in shadow only if all who have the tags would be in that scope;
   otherwise nobody knows who used how much of it, and the scope is unmeasured.
5. The metrics show how many scopes each rule would hold back now, and counters add up for how long and by how many
   bytes. Java gets the scopes themselves, for ``explain`` and ``top``.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from quotahost.base.background import Clock, LoggedOnce, Periodic
from quotahost.broker.host.dump import Ask, BrokerState, Tags
from quotahost.broker.host.messages import Answer, would_be
from quotahost.broker.host.protocol import Shim
from quotahost.model import QuotaType
from quotahost.settings.broker import Settings
from quotahost.settings.types import SUPPLIER
from quotahost.throttling import lowered

_log = logging.getLogger("quotahost.host")

EVERY: Final = 1.0  # seconds from one look to the next
#: With so many clients that a look takes long, the pause is this many times as long: a tenth of a core at most.
PAUSE_PER_LOOK: Final = 9
#: How many scopes of each type Java is told of, for ``explain`` and ``top``.
TOLD: Final = 1000
_TYPE: Final = "Shadow"
FACTOR: Final = "factor"  # the rule's name in the property ``shadow``
_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
#: Of partition mutations Kafka measures a bucket on one node alone, which says nothing of a limit that isn't there.
TYPES: Final = (*_BYTES, QuotaType.REQUEST)

#: One scope: its quota type and its tags.
Key: TypeAlias = tuple[QuotaType, Tags]


class Shadow:
    """Looks once a second while a supplier or the factor is in shadow, shows what it finds, and adds it up.

    Java keeps the numbers, so they go on over a change of the settings and over a restart of the host.
    """

    def __init__(self, shim: Shim, clock: Clock) -> None:
        """The thread starts with the first rule in shadow, or where a host before this one had some."""
        self._shim, self._clock = shim, clock
        self._rules: Sequence[str] = ()
        self._thread: Periodic | None = None
        self._shown = {*filter(_is_ours, shim.left(_TYPE))}  # at first by a host before this one
        self._text: str | None = None  # what Java was told last; None before the first look
        self._looked_at: float | None = None  # None before the first look since a rule is in shadow
        self._pause = EVERY
        self._fault = LoggedOnce(_log)

    def configure(self, settings: Settings) -> None:
        self._rules = [rule for rule in settings.shadow.names() if _is_ours(rule)]
        if self._thread:
            self._thread.wake()
        elif self._rules or self._shown:
            self._thread = Periodic("shadow", self._work, lambda: self._pause)

    def close(self) -> None:
        if self._thread:
            self._thread.close()

    # ---- the thread ----

    def _work(self) -> None:
        began = self._clock()
        try:
            self.look()
        except Exception as error:  # of JPype's, too, while the JVM shuts down; the thread must outlive it
            self._fault.report("What rules in shadow would do can't be compared now (%r)", error)
        else:
            self._fault.healed()
        took = self._clock() - began
        self._pause = max(EVERY - took, PAUSE_PER_LOOK * took) if self._rules else float("inf")

    def look(self) -> None:
        rules, now = self._rules, self._clock()
        seconds = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now if rules else None
        comparison = compare(self._shim.ask) if rules else Comparison()
        # A rule in shadow is shown from the first look on, though nobody is held back.
        self._shown |= {*rules, *comparison.counts}
        for rule in self._shown:
            count = comparison.counts.get(rule, Count())
            self._shim.gauge(_TYPE, rule, "Over", float(count.over))
            self._shim.gauge(_TYPE, rule, "Unmeasured", float(count.unmeasured))
            # To add 0 shows what has counted nothing yet.
            self._shim.count(_TYPE, rule, "Seconds", count.over * seconds)
            self._shim.count(_TYPE, rule, "Bytes", count.beyond * seconds)
        if (text := _told(comparison.held)) != self._text:
            self._shim.held(text)
            self._text = text


def _is_ours(rule: str) -> bool:
    return rule == FACTOR or rule.startswith(SUPPLIER)


def _told(held: Mapping[Key, str]) -> str:
    """By quota type, [user tag, client-id tag, rule] of each scope that would be held back, as JSON in ASCII."""
    scopes: dict[str, list[tuple[str, str, str]]] = {}
    # Sorted by name, so that the text is the same as long as the same scopes are held.
    for (quota_type, tags), rule in sorted(held.items()):
        scopes.setdefault(quota_type, []).append((*tags, rule))
    return json.dumps({name: rows[:TOLD] for name, rows in scopes.items()}, separators=(",", ":"))


# ---- one comparison ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Count:
    """How many scopes one rule would hold back."""

    over: int = 0  # scopes that take more than the rule would let through
    unmeasured: int = 0  # scopes for which that can't be told
    beyond: float = 0.0  # bytes/s beyond it, of all of them


@dataclass(slots=True)
class _Use:
    """One pair of tags that Kafka measures for one type, and what suppliers in shadow would give those who have it."""

    key: Key  # the scope in force
    base: float | None  # its rate before the factor; None is unlimited
    stand_in: float  # what the factor multiplies instead: what Java measured when it fell, or what Kafka measures now
    rate: float  # what Kafka measures, in the type's unit
    supplier: str  # the one in force; "" for newcomers
    marked: bool  # all who have the tags write to affected topics
    passes: bool  # all of them pass a closed fence
    scopes: dict[Tags, Answer] = field(default_factory=dict)  # in which scopes they would be
    mixed: bool = False  # some would be in none, or in one for each client-id

    def add(self, would: Answer | None, principal: str, client_id: str, whole: bool) -> None:
        """One client has the tags, or all client-ids of a principal (``whole``) have them."""
        if would is None:
            self.mixed = True
            return
        self.mixed |= whole and would.is_of_client_id
        # Of all client-ids one alone is known: it stands for none.
        self.scopes[would.tags(principal, "" if whole else client_id)] = would


@dataclass(slots=True)
class Comparison:
    """The result."""

    counts: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))  # by rule, where there is something
    #: For each scope that Kafka measures and that a rule would hold back, the rule.
    held: dict[Key, str] = field(default_factory=dict)
    #: What is measured of each scope that a supplier in shadow would make; None if it can't be told.
    rates: dict[Key, float | None] = field(default_factory=dict)

    def hold(self, rule: str, uses: list[_Use], beyond: float) -> None:
        """The rule would hold back the one scope that has all of these, which are so far beyond its limit."""
        count = self.counts[rule]
        count.over += 1
        # A share of a thread has no bytes.
        count.beyond += beyond if uses[0].key[0] in _BYTES else 0.0
        for use in uses:
            self.held[use.key] = rule


def limit(rate: float | None, factor: float, floor: float) -> float | None:
    """The limit that Java would make (``org.quotahost.table.Rule``) if nothing were in shadow; None is unlimited.

    ``rate`` is what the factor multiplies; None if nothing is known of an unlimited client's.
    """
    if rate is None:
        return None if factor > 0 else floor
    return lowered(rate, factor, floor)


def compare(ask: Ask) -> Comparison:
    """Compare all that Kafka measures with all rules in shadow; ``ask`` is ``Shim.ask``."""
    state, comparison = BrokerState.of(ask("state")), Comparison()
    suppliers = any(rule.startswith(SUPPLIER) for rule in state.shadow)
    # Types have nothing to do with each other, and of one there may be 50,000 holders.
    for quota_type in TYPES:
        by_factor = state.factor_in_shadow and state.factor < 1 and quota_type in state.factor_types
        if not (by_factor or suppliers or not state.enforced):
            continue
        uses = _uses(quota_type, ask("holders", quota_type.value)["holders"])
        for use in uses:
            # With ``shadow=all`` the quotas that would be in force are in shadow, too.
            if not state.enforced and use.supplier and use.base is not None and use.rate > use.base:
                comparison.hold(SUPPLIER + use.supplier, [use], use.rate - use.base)
            if by_factor and (use.marked or not state.is_for_topics):
                _factor(use, state, comparison)
        _suppliers(quota_type, uses, state, comparison)
    return comparison


def _uses(quota_type: QuotaType, holders: Iterable[Sequence[Any]]) -> list[_Use]:
    uses: dict[Tags, _Use] = {}
    wanted = quota_type.value
    for (
        principal, client_id, whole, name, user_tag, client_tag, base, stand_in, measured, newcomer, supplier,
        shadow, marked, passes,
    ) in holders:  # fmt: skip
        if name != wanted:
            continue
        tags = user_tag, client_tag
        use = uses.get(tags)
        if use is None:
            # A newcomer's rate is no supplier's. Behind a tab stand the rates of others.
            rate = measured or 0.0
            whose = "" if newcomer else supplier.partition("\t")[0]
            use = uses[tags] = _Use(
                (quota_type, tags), base, rate if stand_in is None else stand_in, rate, whose, marked, passes
            )  # fmt: skip
        else:
            use.marked &= marked
            use.passes &= passes
        use.add(would_be(shadow, quota_type), principal, client_id, whole)
    return list(uses.values())


def _factor(use: _Use, state: BrokerState, comparison: Comparison) -> None:
    """What the factor in shadow would make of the quota in force; the taps would have arrived."""
    quota_type = use.key[0]
    if quota_type is QuotaType.PRODUCE and state.stops_all:
        most = None if use.passes else 0.0  # the fence would turn it back
    else:
        whole = use.stand_in if use.base is None else use.base
        most = limit(whole, state.factor, state.floors[quota_type])
    # The factor holds back what the quota lets through.
    passed = use.rate if use.base is None else min(use.rate, use.base)
    if most is not None and passed > most:
        comparison.hold(FACTOR, [use], passed - most)


def _suppliers(quota_type: QuotaType, uses: list[_Use], state: BrokerState, comparison: Comparison) -> None:
    """What suppliers in shadow would make of the quotas, with the factor that is enforced now."""
    scopes: dict[Tags, tuple[Answer, list[_Use]]] = {}
    for use in uses:
        for tags, would in use.scopes.items():
            scopes.setdefault(tags, (would, []))[1].append(use)
    untouched = state.factor_in_shadow or state.is_for_topics or quota_type not in state.factor_types
    factor = 1.0 if untouched else state.limit_factor if quota_type is QuotaType.PRODUCE else state.factor
    for tags, (would, members) in scopes.items():
        rule = SUPPLIER + would.supplier
        measured = all(len(use.scopes) == 1 and not use.mixed for use in members)
        rate = sum(use.rate for use in members)
        comparison.rates[quota_type, tags] = rate if measured else None
        most = limit(would.rate, factor, state.floors[quota_type]) if state.enforced else None
        if most is not None and not measured:
            comparison.counts[rule].unmeasured += 1
        elif most is not None and rate > most:
            comparison.hold(rule, members, rate - most)
