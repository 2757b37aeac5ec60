"""``Shadow`` computes which clients a supplier or the factor in shadow would hold back, for metrics, top and explain.

A rule in shadow is computed and not enforced (the property ``shadow``). ``new_clients`` leaves a supplier in shadow out
of the answers in force, and adds its would-be quotas to them. Java judges the thresholds of topics itself
(``org.quotahost.topics``).

1. A thread asks Java once a second (``Shadow.look``); no request waits for it. Java answers with the state of the
   broker (``state``). For each quota type it lists clients with their metric tags, the rates that Kafka measures, and
   their would-be quotas (``holders``).
2. Rows with the same tags become one ``_Use``, because Kafka measures by tags.
3. ``compare`` judges each rule as if only this rule were enforced: the quotas with ``shadow=all``, the factor, and each
   supplier in shadow. Only the part of a rate above the rule's limit counts, as for Kafka itself.
4. A measured rate counts for a would-be scope only if all clients with the tags would be in that scope. If not, nobody
   knows how much of the rate these clients use, and the scope is unmeasured.
5. The metrics show how many scopes each rule would hold back now, and count for how long and by how many bytes. Java
   gets the scopes themselves, for ``explain`` and ``top``.
"""

import json
import logging
import math
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

EVERY: Final = 1.0  # seconds from the end of a look to the next one, at least
#: The pause is at least this many times as long as the look before it, so the looks take a tenth of a core at most.
_REST: Final = 9
#: The most scopes of each type that Java gets, for ``explain`` and ``top``.
TOLD: Final = 1000
_TYPE: Final = "Shadow"
FACTOR: Final = "factor"  # the rule's name in the property ``shadow``
_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
#: Partition mutations are left out: Kafka has a token bucket on one node, which can't show what another limit would do.
TYPES: Final = (*_BYTES, QuotaType.REQUEST)

#: One scope: its quota type and its tags.
Key: TypeAlias = tuple[QuotaType, Tags]


class Shadow:
    """Looks once a second while a supplier or the factor is in shadow, and shows and counts what it finds.

    Java keeps the numbers, so they survive a change of the settings and a restart of the host.
    """

    def __init__(self, shim: Shim, clock: Clock) -> None:
        """The thread starts with the first rule in shadow, or if the host before this one had such rules."""
        self._shim, self._clock = shim, clock
        self._rules: Sequence[str] = ()
        self._thread: Periodic | None = None
        self._shown = {*filter(_is_ours, shim.left(_TYPE))}  # begins with the rules of the host before this one
        self._text: str | None = None  # the last text that Java got; None before the first look
        self._looked_at: float | None = None  # None before the first look with a rule in shadow
        self._fault = LoggedOnce(_log)

    def configure(self, settings: Settings) -> None:
        self._rules = [rule for rule in settings.shadow.names() if _is_ours(rule)]
        if self._thread:
            self._thread.wake()
        elif self._rules or self._shown:
            self._thread = Periodic("shadow", self._work, lambda: EVERY if self._rules else math.inf, rest=_REST)

    def close(self) -> None:
        if self._thread:
            self._thread.close()

    # ---- the thread ----

    def _work(self) -> None:
        # JPype also raises while the JVM shuts down.
        with self._fault.caught("The effect of rules in shadow can't be computed now (%s)", repr):
            self.look()

    def look(self) -> None:
        rules, now = self._rules, self._clock()
        seconds = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now if rules else None
        comparison = compare(self._shim.ask) if rules else Comparison()
        # Show each rule in shadow from the first look on, even if it would hold nobody back.
        self._shown |= {*rules, *comparison.counts}
        for rule in self._shown:
            count = comparison.counts.get(rule, Count())
            self._shim.gauge(_TYPE, rule, "Over", float(count.over))
            self._shim.gauge(_TYPE, rule, "Unmeasured", float(count.unmeasured))
            # Adding 0 shows a counter that has counted nothing yet.
            self._shim.count(_TYPE, rule, "Seconds", count.over * seconds)
            self._shim.count(_TYPE, rule, "Bytes", count.beyond * seconds)
        if (text := _told(comparison.held)) != self._text:
            self._shim.held(text)
            self._text = text


def _is_ours(rule: str) -> bool:
    return rule == FACTOR or rule.startswith(SUPPLIER)


def _told(held: Mapping[Key, str]) -> str:
    """Each scope that would be held back, as [user tag, client-id tag, rule] by quota type, in JSON and ASCII."""
    scopes: dict[str, list[tuple[str, str, str]]] = {}
    # Sorted by name, so that the text stays the same while the same scopes would be held back.
    for (quota_type, tags), rule in sorted(held.items()):
        scopes.setdefault(quota_type, []).append((*tags, rule))
    return json.dumps({name: rows[:TOLD] for name, rows in scopes.items()}, separators=(",", ":"))


# ---- one comparison ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Count:
    """How many scopes one rule would hold back."""

    over: int = 0  # scopes with a rate above the rule's limit
    unmeasured: int = 0  # scopes whose rate isn't known
    beyond: float = 0.0  # bytes/s above the limits, of all these scopes together


@dataclass(slots=True)
class _Use:
    """One pair of tags that Kafka measures for one type, and the would-be quotas of the clients with these tags."""

    key: Key  # the scope in force
    base: float | None  # the quota's rate before the factor; None is unlimited
    stand_in: float  # what the factor multiplies if base is None: the rate when the factor fell, or the rate now
    rate: float  # the rate that Kafka measures, in the type's unit
    supplier: str  # the supplier in force; "" for newcomers
    marked: bool  # all clients with the tags write to affected topics
    passes: bool  # all clients with the tags pass a closed fence
    scopes: dict[Tags, Answer] = field(default_factory=dict)  # the would-be scopes of these clients
    mixed: bool = False  # some of these clients would be in no scope, or in a scope for each client-id

    def add(self, would: Answer | None, principal: str, client_id: str, whole: bool) -> None:
        """Add a client with the tags, or a principal all of whose client-ids have them (``whole``)."""
        if would is None:
            self.mixed = True
            return
        self.mixed |= whole and would.is_of_client_id
        # With ``whole`` the client-id is only one of many, so it is left out.
        self.scopes[would.tags(principal, "" if whole else client_id)] = would


@dataclass(slots=True)
class Comparison:
    """The result of ``compare``."""

    counts: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))  # by rule; only rules with a count
    #: For each scope in force that a rule would hold back, this rule.
    held: dict[Key, str] = field(default_factory=dict)
    #: The measured rate of each would-be scope; None if the scope is unmeasured.
    rates: dict[Key, float | None] = field(default_factory=dict)

    def hold(self, rule: str, uses: list[_Use], beyond: float) -> None:
        """Count one scope that the rule would hold back: its ``uses`` are ``beyond`` above the limit together."""
        count = self.counts[rule]
        count.over += 1
        # Request quotas are in percent of a thread, not bytes.
        count.beyond += beyond if uses[0].key[0] in _BYTES else 0.0
        for use in uses:
            self.held[use.key] = rule


def limit(rate: float | None, factor: float, floor: float) -> float | None:
    """The limit that Java would make (``org.quotahost.table.Rule``) if nothing were in shadow; None is unlimited.

    ``rate`` is the rate that the factor multiplies; None if an unlimited client's rate isn't known.
    """
    if rate is None:
        return None if factor > 0 else floor
    return lowered(rate, factor, floor)


def compare(ask: Ask) -> Comparison:
    """Compare the rates that Kafka measures with all rules in shadow; ``ask`` is ``Shim.ask``."""
    state, comparison = BrokerState.of(ask("state")), Comparison()
    suppliers = any(rule.startswith(SUPPLIER) for rule in state.shadow)
    # One type after the other, because the types are independent, and a type may have 50,000 holders.
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
            # No supplier has given a newcomer's rate. The other suppliers' rates follow after a tab.
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
    """Judge the factor in shadow on the quota in force, as if the taps had reached the factor."""
    quota_type = use.key[0]
    if quota_type is QuotaType.PRODUCE and state.stops_all:
        most = None if use.passes else 0.0  # the fence would turn the requests back
    else:
        whole = use.stand_in if use.base is None else use.base
        most = limit(whole, state.factor, state.floors[quota_type])
    # Only the rate that the quota lets through counts against the factor.
    passed = use.rate if use.base is None else min(use.rate, use.base)
    if most is not None and passed > most:
        comparison.hold(FACTOR, [use], passed - most)


def _suppliers(quota_type: QuotaType, uses: list[_Use], state: BrokerState, comparison: Comparison) -> None:
    """Judge the suppliers in shadow, with the factor that is enforced now."""
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
