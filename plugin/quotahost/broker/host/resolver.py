"""From clients to answers: the exemptions first, then the chain of suppliers.

``Resolver`` takes the new clients of one turn. It asks the exemptions, and for all others a ``Chain``: by default the
first supplier that answers gives the quota. With ``supplier.combine=most-constraining`` all of them are asked, and the
smallest rate decides, whatever scope shares it: unlimited is the largest, and of equal rates that of the first supplier
decides.

With each answer goes what the suppliers know of the principal's other client-ids, so that Java's QuotaTable, to which
the answers go through the shim, learns from one request all that it can of a principal. A client is resolved when it is
first seen, and again when a plugin announces that its answers have changed.

Suppliers in shadow are left out of the chain that is in force. What they would have given goes beside its answer, and
makes no other difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from quotahost.broker.host.exemptions import Exemptions
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.messages import EXEMPT, NEWCOMER, Answers, Reason
from quotahost.broker.host.rows import NOBODY, UNLIMITED, Answer, Distinct, Rows, Would
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, ScopeKind

__all__ = ["Resolver", "Supplier"]


class Resolver:
    """Asks the suppliers. If one fails, its client stays a newcomer, or Java keeps the client's last quota."""

    def __init__(
        self,
        suppliers: Mapping[str, Supplier],
        exemptions: Exemptions,
        guard: Guard,
        combine: str = "first",
        in_shadow: Collection[str] = (),
    ) -> None:
        """Suppliers by name, in the order in which they are asked; ``combine`` as in ``supplier.combine``."""
        every = [(at, name, each) for at, (name, each) in enumerate(suppliers.items())]
        self._chain = Chain([each for each in every if each[1] not in in_shadow], guard, combine)
        self._shadows = frozenset(at for at, name, _ in every if name in in_shadow)
        self._trial = Chain(every, guard, combine, in_shadow=True) if self._shadows else None
        # Answers give their source as an index into these, because a supplier may have the name of a Reason.
        self._names = (*suppliers, *Reason)
        of_types = len(QUOTA_TYPES)
        self._exempt = {r: ((EXEMPT, UNLIMITED, at),) * of_types for at, r in enumerate(Reason, len(suppliers))}
        self._exemptions = exemptions

    def answers(self, clients: Sequence[Client]) -> Answers:
        """The answers for these clients, in their order."""
        rows = Rows(self._names)
        # What is known of a principal, by the row of its client-ids that are not distinct: one is asked about.
        alike: dict[str, tuple[int, frozenset[str]]] = {}
        numbers = rows.answers.rows
        for client in clients:
            if reason := self._exemptions.reason(client):
                numbers.append(self._exempt_row(client, reason, rows))
                continue
            known = alike.get(client.principal)
            if known is None or client.client_id in known[1]:
                answers, distinct = self._chain.resolve(client, rows)
                row, same = self._row(client, answers, distinct, rows)
                known = row, same or NOBODY
                if same is not None and client.client_id not in same:
                    alike[client.principal] = known
            numbers.append(known[0])
        return rows.finished()

    def _exempt_row(self, client: Client, reason: Reason, rows: Rows) -> int:
        if client.principal in self._exemptions.principals:
            return rows.row(self._exempt[reason], NOBODY)
        # By its client-id alone, which Java's table asks the fence about for every client of this principal.
        return rows.row_alone(self._exempt[reason])

    def _row(self, client: Client, answers: tuple[Answer, ...], distinct: Distinct, rows: Rows) -> tuple[int, Distinct]:
        """The row of a client's answer, and for which client-ids another row may hold; None: for each."""
        # After a failure the client is asked about again in a moment, with all suppliers.
        if self._trial is None or any(code == NEWCOMER for code, _, _ in answers):
            return rows.row(answers, distinct), distinct
        tried, others = self._trial.resolve(client, rows)
        would = tuple([each if each[0] != NEWCOMER and each[2] in self._shadows else None for each in tried])
        # Where a supplier in shadow doesn't know its distinct client-ids, those in force must not be asked more often.
        known = distinct if distinct is None or others is None else distinct | others
        row = rows.row(_measured(answers, would), known, would if any(would) else ())
        return row, known if others is not None else None


def _measured(answers: tuple[Answer, ...], would: Would) -> tuple[Answer, ...]:
    """The answers; who is unlimited but would not be is measured in the scope in which it would be limited."""
    return tuple([
        (tried[0], rate, source) if tried is not None and math.isnan(rate) else (code, rate, source)
        for (code, rate, source), tried in zip(answers, would, strict=True)
    ])  # fmt: skip


Ask: TypeAlias = Callable[[Client, QuotaType], Quota | None]
AskDistinct: TypeAlias = Callable[[str], Collection[str] | None]

NO_ANSWER: Final = (ScopeKind.CLIENT.value, UNLIMITED, -1)  # no supplier has an opinion


class Supplier(NamedTuple):
    """A supplier as the resolver asks it: its ``quota``, and its ``distinct_client_ids`` if it has that."""

    quota: Ask
    distinct: AskDistinct | None = None

    @staticmethod
    def of(plugin: Any) -> Supplier:
        """The methods of a plugin."""
        distinct = getattr(plugin, "distinct_client_ids", None)
        return Supplier(plugin.quota, distinct if callable(distinct) else None)


class Chain:
    """Asks some of the suppliers. If one fails, nobody knows what it would have said, and the answer is NEWCOMER."""

    def __init__(
        self, suppliers: Sequence[tuple[int, str, Supplier]], guard: Guard, combine: str, *, in_shadow: bool = False
    ) -> None:
        """Each supplier with its number, to which sources refer, and its name.

        ``in_shadow``: nothing of the answers is enforced, and sources are suppliers alone.
        """
        self._asks_all = combine == "most-constraining"
        self._suppliers = tuple((at, name, *each) for at, name, each in suppliers)
        self._names = {at: name for at, name, _ in suppliers}
        self._asked = {at: place for place, at in enumerate(self._names, 1)}
        self._guard, self._in_shadow = guard, in_shadow

    def resolve(self, client: Client, rows: Rows) -> tuple[tuple[Answer, ...], Distinct]:
        """The answers by quota type, and which client-ids of the principal may have others."""
        if self._asks_all:
            answers = tuple([self._smallest(client, quota_type, rows) for quota_type in QUOTA_TYPES])
            return answers, self._distinct(client.principal, len(self._suppliers), rows)
        answers = self._first(client, rows)
        # The suppliers behind the one that answered are not asked: what they know makes no difference.
        all_asked = NO_ANSWER in answers
        asked = len(self._suppliers) if all_asked else max([self._asked[source] for _, _, source in answers])
        return answers, self._distinct(client.principal, asked, rows)

    def _first(self, client: Client, rows: Rows) -> tuple[Answer, ...]:
        # One function for all types and suppliers: 20,000 clients that are new at once come here.
        answers: list[Answer] = []
        for quota_type in QUOTA_TYPES:
            answer = NO_ANSWER
            for at, name, ask, _ in self._suppliers:
                try:
                    # Not by guard.call: each client that works would heal the plugin, each that fails be logged.
                    quota = ask(client, quota_type)
                    if quota is not None:
                        answer = rows.answer(quota, at)
                        break
                except BaseException as error:  # see quotahost.broker.host.guard
                    answer = self._failed(name, at, error)
                    break
            answers.append(answer)
        return tuple(answers)

    def _smallest(self, client: Client, quota_type: QuotaType, rows: Rows) -> Answer:
        given: list[tuple[float, int, Quota]] = []
        for at, name, ask, _ in self._suppliers:
            try:
                quota = ask(client, quota_type)
                if quota is not None:
                    rate = rows.answer(quota, at)[1]
                    # NaN is neither smaller nor larger than any rate; infinity is the largest.
                    given.append((math.inf if math.isnan(rate) else rate, at, quota))
            except BaseException as error:  # see quotahost.broker.host.guard
                return self._failed(name, at, error)
        return self._most_constraining(given, rows) if given else NO_ANSWER

    def _failed(self, name: str, at: int, error: BaseException) -> Answer:
        # The next supplier is not asked, because nobody knows what this one would have answered.
        shadow = "nobody knows what it would give; it is in shadow or behind one that is"
        consequence = shadow if self._in_shadow else "its clients keep their last quota or stay newcomers"
        self._guard.report(name, "quota()", consequence, error)
        return NEWCOMER, UNLIMITED, at

    def _most_constraining(self, given: list[tuple[float, int, Quota]], rows: Rows) -> Answer:
        """The quota with the smallest rate; the text of its source adds the other rates, for ``quotahost explain``."""
        _, at, quota = min(given, key=itemgetter(0))  # the first of several
        others = [f"{self._names[a]}={rate}" for rate, a, _ in given if a != at and not self._in_shadow]
        # Java writes explain's line with tabs, so the other rates become fields of that line.
        source = rows.source("\t".join([self._names[at], *others])) if others else at
        return rows.answer(quota, source)

    def _distinct(self, principal: str, asked: int, rows: Rows) -> Distinct:
        """The client-ids that any of the first ``asked`` suppliers names; None if one doesn't know."""
        union = NOBODY
        for _, name, _, distinct in self._suppliers[:asked]:
            if distinct is None:
                return None
            try:
                ids = distinct(principal)
                if ids is None:
                    return None
                if not ids and type(ids) is frozenset:
                    continue
                named = rows.frozen(ids)
            except BaseException as error:  # see quotahost.broker.host.guard
                consequence = "each client-id may have another quota"
                self._guard.report(name, "distinct_client_ids()", consequence, error)
                return None
            # The same set for each principal stays one object, which is hashed once.
            union = union | named if union and named else union or named
        return union
