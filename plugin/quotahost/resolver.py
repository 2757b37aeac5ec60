"""From clients to answers: exemptions first, then the suppliers in their order; the first answer counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from quotahost.exemptions import Exemptions, Reason
from quotahost.guard import Guard
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope, ScopeKind
from quotahost.shim import EXEMPT, GROUP, NEWCOMER, Answers

Ask = Callable[[Client, QuotaType], Quota | None]

_UNLIMITED: Final = math.nan
_NOBODY: Final = -1
_NO_ANSWER: Final = (ScopeKind.CLIENT.value, _UNLIMITED, _NOBODY)
_EXEMPT_CODES: Final = [EXEMPT] * len(QUOTA_TYPES)
_EXEMPT_RATES: Final = [_UNLIMITED] * len(QUOTA_TYPES)


class Resolver:
    """Asks the suppliers. A supplier that fails makes its client a newcomer, or keeps its last quota."""

    def __init__(self, suppliers: Mapping[str, Ask], exemptions: Exemptions, guard: Guard) -> None:
        """Suppliers by name, in the order in which they are asked."""
        self._suppliers = tuple((at, name, ask) for at, (name, ask) in enumerate(suppliers.items()))
        self._names = (*suppliers, *Reason)
        self._exempt_sources = {
            reason: [at] * len(QUOTA_TYPES) for at, reason in enumerate(Reason, len(suppliers))
        }
        self._exempt = exemptions
        self._guard = guard

    def answers(self, clients: Sequence[Client]) -> Answers:
        """A scope code, a rate and who gave it, for each client and quota type."""
        answers = Answers(suppliers=self._names)
        groups: dict[str, int] = {}
        for client in clients:
            if reason := self._exempt.reason(client):
                answers.sources.extend(self._exempt_sources[reason])
                answers.codes.extend(_EXEMPT_CODES)
                answers.rates.extend(_EXEMPT_RATES)
                continue
            for quota_type in QUOTA_TYPES:
                code, rate, source = self._one(client, quota_type, groups)
                answers.codes.append(code)
                answers.rates.append(rate)
                answers.sources.append(source)
        answers.groups.extend(groups)
        return answers

    def _one(self, client: Client, quota_type: QuotaType, groups: dict[str, int]) -> tuple[int, float, int]:
        for at, name, ask in self._suppliers:
            try:
                quota = ask(client, quota_type)
                if quota is None:
                    continue
                return *_coded(quota, groups), at
            except BaseException as error:  # see quotahost.guard
                self._guard.report(
                    name, "quota()", "its clients keep their last quota or stay newcomers", error
                )
                return NEWCOMER, _UNLIMITED, at
        return _NO_ANSWER


def _coded(quota: Quota, groups: dict[str, int]) -> tuple[int, float]:
    if not isinstance(quota, Quota):
        raise TypeError(f"a supplier must answer a Quota or None, not {quota!r}")
    rate = _UNLIMITED if quota.rate is None else float(quota.rate)
    return _scope_code(quota.scope, groups), rate


def _scope_code(scope: Scope, groups: dict[str, int]) -> int:
    if not isinstance(scope, Scope):
        raise TypeError(f"a quota's scope must be a Scope, not {scope!r}")
    if scope.kind is not ScopeKind.GROUP:
        return int(scope.kind.value)
    return GROUP + groups.setdefault(scope.name, len(groups))


def failures(answers: Answers) -> bool:
    """Whether any client was left without an answer."""
    return NEWCOMER in answers.codes


def asks(suppliers: Iterable[tuple[str, object]]) -> dict[str, Ask]:
    """Each supplier's bound ``quota`` by its name."""
    return {name: supplier.quota for name, supplier in suppliers}  # type: ignore[attr-defined]
