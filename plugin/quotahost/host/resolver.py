"""From clients to answers: the exemptions first, then the suppliers in their order.

By default the first supplier that answers gives the quota. With ``supplier.combine=most-constraining`` the resolver
asks all of them, and the smallest rate decides, whatever scope shares it: unlimited is the largest, and of equal rates
that of the first supplier decides. The answers go on through the shim to Java's QuotaTable. A client is resolved when
it is first seen, and again when a plugin announces that its answers have changed, which ``ChangedAnswers`` collects.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from quotahost.host.exemptions import Exemptions, Reason
from quotahost.host.guard import Guard
from quotahost.host.messages import EXEMPT, GROUP, NEWCOMER, Answers
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope, ScopeKind

Ask: TypeAlias = Callable[[Client, QuotaType], Quota | None]
Whom: TypeAlias = tuple[str | None, str | None]  # principal and client-id, None for any

_UNLIMITED: Final = math.nan
_NO_ANSWER: Final = (ScopeKind.CLIENT.value, _UNLIMITED, -1)  # no supplier has an opinion
_EXEMPT_CODES: Final = [EXEMPT] * len(QUOTA_TYPES)
_EXEMPT_RATES: Final = [_UNLIMITED] * len(QUOTA_TYPES)

EVERYONE: Final[Whom] = (None, None)
# Announcements: for more than these, one walk through all clients costs less than a walk for each.
MOST_APART: Final = 100


class Resolver:
    """Asks the suppliers. If one fails, its client stays a newcomer, or Java keeps the client's last quota."""

    def __init__(
        self, suppliers: Mapping[str, Ask], exemptions: Exemptions, guard: Guard, combine: str = "first"
    ) -> None:
        """Suppliers by name, in the order in which they are asked; ``combine`` as in ``supplier.combine``."""
        self._asks_all = combine == "most-constraining"
        self._suppliers = tuple((at, name, ask) for at, (name, ask) in enumerate(suppliers.items()))
        # Answers give their source as an index into these, because a supplier may have the name of a Reason.
        self._names = (*suppliers, *Reason)
        self._exempt_sources = {reason: [at] * len(QUOTA_TYPES) for at, reason in enumerate(Reason, len(suppliers))}
        self._exemptions = exemptions
        self._guard = guard

    def answers(self, clients: Sequence[Client]) -> Answers:
        """A scope code, a rate and its source, for each client and quota type."""
        answers = Answers()
        groups: dict[str, int] = {}
        combined: dict[str, int] = {}
        for client in clients:
            if reason := self._exemptions.reason(client):
                answers.sources.extend(self._exempt_sources[reason])
                answers.codes.extend(_EXEMPT_CODES)
                answers.rates.extend(_EXEMPT_RATES)
                continue
            for quota_type in QUOTA_TYPES:
                code, rate, source = self._resolve(client, quota_type, groups, combined)
                answers.codes.append(code)
                answers.rates.append(rate)
                answers.sources.append(source)
        answers.groups.extend(groups)
        answers.suppliers = (*self._names, *combined)
        return answers

    def _resolve(
        self, client: Client, quota_type: QuotaType, groups: dict[str, int], combined: dict[str, int]
    ) -> tuple[int, float, int]:
        """Code, rate and source; ``groups`` and ``combined`` number the texts that this batch needs."""
        given: list[tuple[float, int, Quota]] = []
        for at, name, ask in self._suppliers:
            try:
                # Not by guard.call: each client that works would heal the plugin, and each that fails would be logged.
                quota = ask(client, quota_type)
                if quota is None:
                    continue
                rate = _rate(quota)
                if not self._asks_all:
                    return _scope_code(quota.scope, groups), rate, at
            except BaseException as error:  # see quotahost.host.guard
                # The next supplier is not asked, because nobody knows what this one would have answered.
                consequence = "its clients keep their last quota or stay newcomers"
                self._guard.report(name, "quota()", consequence, error)
                return NEWCOMER, _UNLIMITED, at
            # NaN is neither smaller nor larger than any rate; infinity is the largest.
            given.append((math.inf if math.isnan(rate) else rate, at, quota))
        return self._most_constraining(given, groups, combined) if given else _NO_ANSWER

    def _most_constraining(
        self, given: list[tuple[float, int, Quota]], groups: dict[str, int], combined: dict[str, int]
    ) -> tuple[int, float, int]:
        """The quota with the smallest rate; the text of its source adds the other rates, for ``quotahost explain``."""
        _, at, quota = min(given, key=itemgetter(0))  # the first of several
        others = [f"{self._names[a]}={rate}" for rate, a, _ in given if a != at]
        # Java writes explain's line with tabs, so the other rates become fields of that line.
        text = "\t".join([self._names[at], *others])
        source = combined.setdefault(text, len(self._names) + len(combined)) if others else at
        return _scope_code(quota.scope, groups), _rate(quota), source


def _rate(quota: Quota) -> float:
    # A wrong type must fail here, as the supplier's failure (contract, sentence 6), and not later as the host's.
    if not isinstance(quota, Quota):
        raise TypeError(f"a supplier must answer a Quota or None, not {quota!r}")
    if not isinstance(quota.scope, Scope):
        raise TypeError(f"a quota's scope must be a Scope, not {quota.scope!r}")
    return _UNLIMITED if quota.rate is None else float(quota.rate)


def _scope_code(scope: Scope, groups: dict[str, int]) -> int:
    if scope.kind is not ScopeKind.GROUP:
        return int(scope.kind.value)
    return GROUP + groups.setdefault(scope.name, len(groups))


class ChangedAnswers:
    """For whom plugins have announced that their answers changed. Any thread adds, the host thread takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whom: set[Whom] = set()

    def add(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``.

        Raises:
            TypeError: a name that is neither text nor None.
        """
        # The error must come up on the plugin's own thread: the host thread no longer knows who announced what.
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"answers_changed takes names (str) or None, not {name!r}")
        with self._lock:
            self._whom.add((principal, client_id))

    def take(self) -> set[Whom]:
        """The announcements since the last call; EVERYONE alone if they contain it, or are more than MOST_APART."""
        with self._lock:
            whom, self._whom = self._whom, set()
        return {EVERYONE} if EVERYONE in whom or len(whom) > MOST_APART else whom
