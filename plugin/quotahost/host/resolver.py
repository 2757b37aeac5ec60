"""From clients to answers: exemptions first, then the suppliers in their order.

The first answer counts or, with ``supplier.combine=most-constraining``, the smallest rate of all answers: unlimited is
the largest, and of equal ones the first counts. Rates are compared as numbers, whoever shares them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final

from quotahost.host.exemptions import Exemptions, Reason
from quotahost.host.guard import Guard
from quotahost.host.messages import EXEMPT, GROUP, NEWCOMER, Answers
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope, ScopeKind

# TODO(merge) Whose answers changed, told by plugins from any thread, taken by the host.


Ask = Callable[[Client, QuotaType], Quota | None]


_UNLIMITED: Final = math.nan


_NOBODY: Final = -1


_NO_ANSWER: Final = (ScopeKind.CLIENT.value, _UNLIMITED, _NOBODY)


_EXEMPT_CODES: Final = [EXEMPT] * len(QUOTA_TYPES)


_EXEMPT_RATES: Final = [_UNLIMITED] * len(QUOTA_TYPES)


class Resolver:
    """Asks the suppliers. A supplier that fails makes its client a newcomer, or keeps its last quota."""

    def __init__(
        self, suppliers: Mapping[str, Ask], exemptions: Exemptions, guard: Guard, combine: str = "first"
    ) -> None:
        """Suppliers by name, in the order in which they are asked; ``combine`` as ``supplier.combine``."""
        self._asks_all = combine == "most-constraining"
        self._suppliers = tuple((at, name, ask) for at, (name, ask) in enumerate(suppliers.items()))
        self._names = (*suppliers, *Reason)
        self._exempt_sources = {
            reason: [at] * len(QUOTA_TYPES) for at, reason in enumerate(Reason, len(suppliers))
        }
        self._exempt = exemptions
        self._guard = guard

    def answers(self, clients: Sequence[Client]) -> Answers:
        """A scope code, a rate and who gave it, for each client and quota type."""
        answers = Answers()
        groups: dict[str, int] = {}
        told: dict[str, int] = {}
        for client in clients:
            if reason := self._exempt.reason(client):
                answers.sources.extend(self._exempt_sources[reason])
                answers.codes.extend(_EXEMPT_CODES)
                answers.rates.extend(_EXEMPT_RATES)
                continue
            for quota_type in QUOTA_TYPES:
                code, rate, source = self._one(client, quota_type, groups, told)
                answers.codes.append(code)
                answers.rates.append(rate)
                answers.sources.append(source)
        answers.groups.extend(groups)
        answers.suppliers = (*self._names, *told)
        return answers

    def _one(
        self, client: Client, quota_type: QuotaType, groups: dict[str, int], told: dict[str, int]
    ) -> tuple[int, float, int]:
        given: list[tuple[float, int, Quota]] = []
        for at, name, ask in self._suppliers:
            try:
                quota = ask(client, quota_type)
                if quota is None:
                    continue
                rate = _rate(quota)
                if not self._asks_all:
                    return _scope_code(quota.scope, groups), rate, at
            except BaseException as error:  # see quotahost.host.guard
                self._guard.report(
                    name, "quota()", "its clients keep their last quota or stay newcomers", error
                )
                return NEWCOMER, _UNLIMITED, at
            given.append((math.inf if math.isnan(rate) else rate, at, quota))
        return self._smallest(given, groups, told) if given else _NO_ANSWER

    def _smallest(
        self, given: list[tuple[float, int, Quota]], groups: dict[str, int], told: dict[str, int]
    ) -> tuple[int, float, int]:
        """The source is told with what the others would have given: tab-separated, for ``quotahost explain``."""
        _, at, quota = min(given, key=itemgetter(0))  # the first of several
        others = [f"{self._names[a]}={rate}" for rate, a, _ in given if a != at]
        source = "\t".join([self._names[at], *others])
        number = told.setdefault(source, len(self._names) + len(told)) if others else at
        return _scope_code(quota.scope, groups), _rate(quota), number


def _rate(quota: Quota) -> float:
    if not isinstance(quota, Quota):
        raise TypeError(f"a supplier must answer a Quota or None, not {quota!r}")
    if not isinstance(quota.scope, Scope):
        raise TypeError(f"a quota's scope must be a Scope, not {quota.scope!r}")
    return _UNLIMITED if quota.rate is None else float(quota.rate)


def _scope_code(scope: Scope, groups: dict[str, int]) -> int:
    if scope.kind is not ScopeKind.GROUP:
        return int(scope.kind.value)
    return GROUP + groups.setdefault(scope.name, len(groups))


def failures(answers: Answers) -> bool:
    """Whether any client was left without an answer."""
    return NEWCOMER in answers.codes


def asks(suppliers: Iterable[tuple[str, object]]) -> dict[str, Ask]:
    """Each supplier's bound ``quota`` by its name."""
    return {name: supplier.quota for name, supplier in suppliers}  # type: ignore[attr-defined]


EVERYONE: Final = (None, None)


WORTH_TELLING_APART: Final = 100


class ChangedAnswers:
    """Whose answers changed, as (principal, client-id), None for any. Filled from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whom: set[tuple[str | None, str | None]] = set()

    def add(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``.

        Raises:
            TypeError: a name that is neither text nor None.
        """
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"answers_changed takes names (str) or None, not {name!r}")
        with self._lock:
            self._whom.add((principal, client_id))

    def take(self) -> set[tuple[str | None, str | None]]:
        """All so far; just EVERYONE if that is among them or they are too many to be worth telling apart."""
        with self._lock:
            whom, self._whom = self._whom, set()
        return {EVERYONE} if EVERYONE in whom or len(whom) > WORTH_TELLING_APART else whom
