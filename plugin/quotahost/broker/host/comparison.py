"""Compares what Kafka measures with what rules in shadow would let through: whom each would hold back, by how much.

Each rule is judged as if it alone were put in force, and what counts is the rate beyond its limit, as for Kafka itself.
What Kafka measures is known by pairs of metric tags. It belongs to a scope of a supplier in shadow only if all who have
the tags would be in that scope; otherwise nobody knows who used how much of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from quotahost.broker.host.dump import Ask
from quotahost.broker.host.would_be import Tags, WouldBe, would_be
from quotahost.model import QuotaType
from quotahost.settings.types import SUPPLIER
from quotahost.throttling import lowered

FACTOR: Final = "factor"  # the rule's name in the property ``shadow``
_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
#: Of partition mutations Kafka measures a bucket on one node alone, which says nothing of a limit that isn't there.
TYPES: Final = (*_BYTES, QuotaType.REQUEST)

#: One scope: its quota type and its tags.
Key: TypeAlias = tuple[QuotaType, Tags]
#: The rate that the factor multiplies where a quota is unlimited, by the scope, the rate that Kafka measures there, and
#: the floor.
StandIn: TypeAlias = Callable[[Key, float, float], float | None]


@dataclass(slots=True)
class Count:
    """Of one rule, what one look has found.

    Attributes:
        over: scopes that take more than the rule would let through.
        unmeasured: scopes for which that can't be told.
        beyond: bytes/s beyond it, of all of them.
    """

    over: int = 0
    unmeasured: int = 0
    beyond: float = 0.0


@dataclass(slots=True)
class Comparison:
    """What one look has found.

    Attributes:
        counts: by rule; only those of which there is something to tell.
        held: for each scope that Kafka measures and that a rule would hold back, the rule and the rate beyond it.
        rates: what is measured of each scope that a supplier in shadow would make; None if it can't be told.
    """

    counts: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    held: dict[Key, tuple[str, float]] = field(default_factory=dict)
    rates: dict[Key, float | None] = field(default_factory=dict)

    def hold(self, rule: str, uses: list[_Use], beyond: float) -> None:
        """The rule would hold back the one scope that has all of these, which are so far beyond its limit."""
        count = self.counts[rule]
        count.over += 1
        # A share of a thread has no bytes.
        count.beyond += beyond if uses[0].key[0] in _BYTES else 0.0
        for each in uses:
            self.held[each.key] = rule, beyond


@dataclass(slots=True)
class _Use:
    """One pair of tags that Kafka measures for one type, and what suppliers in shadow would give those who have it.

    Attributes:
        key: the scope in force.
        base: its rate before the factor; None is unlimited.
        stand_in: what the factor multiplies instead; None if Java has measured nothing.
        rate: what Kafka measures, in the type's unit.
        supplier: the one in force; "" for newcomers and who is exempt.
        marked, passes: whether all who have the tags write to affected topics; pass a closed fence.
        scopes: in which scopes they would be.
        mixed: some would be in none, or in one for each client-id.
    """

    key: Key
    base: float | None
    stand_in: float | None
    rate: float
    supplier: str
    exempt: bool
    marked: bool
    passes: bool
    scopes: dict[Tags, WouldBe] | None = None
    mixed: bool = False

    def add(self, would: WouldBe | None, principal: str, client_id: str, whole: bool) -> None:
        """One client has the tags, or all client-ids of a principal (``whole``) have them."""
        if would is None:
            self.mixed = True
            return
        self.mixed |= whole and would.is_of_client_id
        # Of all client-ids one alone is known: it stands for none.
        tags = would.tags(principal, "" if whole else client_id)
        if self.scopes is None:
            self.scopes = {tags: would}
        else:
            self.scopes[tags] = would


@dataclass(slots=True)
class _Sum:
    """What is measured of all tags whose clients would be in one scope."""

    would: WouldBe
    uses: list[_Use]
    rate: float
    measured: bool


class _InForce:
    """What holds while a look lasts, from the shim's answer to ``state``."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        rules = state["shadow"]
        self.enforced: bool = state["enforced"]
        self.suppliers_in_shadow = any(rule.startswith(SUPPLIER) for rule in rules)
        self.factor: float = state["factor"]
        self.factor_in_shadow = FACTOR in rules or not self.enforced
        self.for_some = state["affected_topics"] >= 0
        self._factored = frozenset(map(QuotaType, state["factor_types"]))
        self._floors = {QuotaType(name): floor for name, floor in state["floors"].items()}
        self._tap: float = state["limit_factor"]
        self._closed: bool = state["fence"]["closed"]

    def concerns(self, quota_type: QuotaType) -> bool:
        """Whether rules in shadow have to do with the type."""
        return not self.enforced or self.suppliers_in_shadow or self.factor_concerns(quota_type)

    def factor_concerns(self, quota_type: QuotaType) -> bool:
        """Whether the factor is in shadow and would lower limits of the type."""
        return self.factor_in_shadow and self.factor < 1 and quota_type in self._factored

    def limit(self, quota_type: QuotaType, base: float | None) -> float | None:
        """What a supplier's quota would be as a limit: with the factor that is enforced now."""
        if not self.enforced:
            return None
        untouched = self.factor_in_shadow or self.for_some or quota_type not in self._factored
        factor = 1.0 if untouched else self._tap if quota_type is QuotaType.PRODUCE else self.factor
        return limit(base, factor, self._floors[quota_type])

    def by_factor(self, use: _Use, stand_in: StandIn) -> float | None:
        """What the factor in shadow would make of the quota in force; the taps would have arrived."""
        quota_type = use.key[0]
        if quota_type is QuotaType.PRODUCE and self._closed and not self.for_some:
            return None if use.passes else 0.0  # the fence would turn it back
        floor, instead = self._floors[quota_type], use.stand_in
        if use.base is None and instead is None:
            instead = stand_in(use.key, use.rate, floor)
        return limit(use.base, self.factor, floor, instead)


def limit(base: float | None, factor: float, floor: float, stand_in: float | None = None) -> float | None:
    """The limit that Java would make (``org.quotahost.table.Rule``) if nothing were in shadow; None is unlimited.

    Args:
        base: the quota's rate; None is unlimited.
        factor: 0 to 1.
        floor: no factor takes a rate below it.
        stand_in: the rate that the factor multiplies where ``base`` is None.
    """
    if factor >= 1:
        return base
    whole = stand_in if base is None else base
    if whole is None:
        return None if factor > 0 else floor
    return lowered(whole, factor, floor)


def compare(ask: Ask, stand_in: StandIn = lambda _key, _rate, _floor: None) -> Comparison:
    """Compare all that Kafka measures with all rules in shadow.

    Args:
        ask: ``Shim.ask``; it is asked for ``state``, and for the ``holders`` of each type that rules in shadow concern.
        stand_in: asked where a quota is unlimited and Java has no rate in its place.

    Raises:
        ConnectionError: Java doesn't answer.
    """
    in_force, found = _InForce(ask("state")), Comparison()
    # Types have nothing to do with each other, and of one there may be 50,000 holders.
    for quota_type in TYPES:
        if in_force.concerns(quota_type):
            _compare(quota_type, ask("holders", quota_type.value)["holders"], in_force, stand_in, found)
    return found


def _compare(
    quota_type: QuotaType, holders: Iterable[Sequence[Any]], in_force: _InForce, stand_in: StandIn, found: Comparison
) -> None:
    sums: dict[Tags, _Sum] = {}
    by_factor = in_force.factor_concerns(quota_type)
    for use in _uses(quota_type, holders, in_force.suppliers_in_shadow).values():
        if not in_force.enforced:
            _quota(use, found)
        if by_factor:
            _factor(use, in_force, found, stand_in)
        if not use.scopes:
            continue
        measured = len(use.scopes) == 1 and not use.mixed
        for tags, would in use.scopes.items():
            if (total := sums.get(tags)) is None:
                sums[tags] = _Sum(would, [use], use.rate, measured)
            else:
                total.uses.append(use)
                total.rate += use.rate
                total.measured &= measured
    for tags, total in sums.items():
        _supplier((quota_type, tags), total, in_force, found)


def _uses(quota_type: QuotaType, holders: Iterable[Sequence[Any]], suppliers: bool) -> dict[Tags, _Use]:
    """By the tags in force; ``suppliers``: whether some are in shadow."""
    uses: dict[Tags, _Use] = {}
    wanted = quota_type.value
    for (
        principal, client_id, whole, name, user_tag, client_tag, base, stand_in, rate, exempt, newcomer, supplier,
        shadow, marked, passes,
    ) in holders:  # fmt: skip
        if name != wanted:
            continue
        tags = user_tag, client_tag
        use = uses.get(tags)
        if use is None:
            # A newcomer's rate is no supplier's, and the exempt have none. Behind a tab stand the rates of others.
            whose = "" if exempt or newcomer else supplier.partition("\t")[0]
            use = uses[tags] = _Use(
                (quota_type, tags), None if exempt else base, stand_in, rate or 0.0, whose, exempt, marked, passes
            )
        else:
            use.marked &= marked
            use.passes &= passes
        if suppliers:
            use.add(would_be(shadow, quota_type) if shadow else None, principal, client_id, whole)
    return uses


def _quota(use: _Use, found: Comparison) -> None:
    """With ``shadow=all`` the quotas that would be in force are in shadow, too."""
    if use.supplier and use.base is not None and use.rate > use.base:
        found.hold(SUPPLIER + use.supplier, [use], use.rate - use.base)


def _factor(use: _Use, in_force: _InForce, found: Comparison, stand_in: StandIn) -> None:
    if use.exempt or (in_force.for_some and not use.marked):
        return
    # The factor holds back what the quota lets through.
    passed = use.rate if use.base is None else min(use.rate, use.base)
    most = in_force.by_factor(use, stand_in)
    if most is not None and passed > most:
        found.hold(FACTOR, [use], passed - most)


def _supplier(key: Key, total: _Sum, in_force: _InForce, found: Comparison) -> None:
    rule = SUPPLIER + total.would.supplier
    most = in_force.limit(key[0], total.would.rate)
    found.rates[key] = total.rate if total.measured else None
    if most is None:
        return
    if not total.measured:
        found.counts[rule].unmeasured += 1
    elif total.rate > most:
        found.hold(rule, total.uses, total.rate - most)
