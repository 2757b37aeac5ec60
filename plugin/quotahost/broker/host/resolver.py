"""From clients to answers: the exemptions first, then the chain of suppliers (``chain``).

With each answer goes what the suppliers know of the principal's other client-ids, so that Java's QuotaTable, to which
the answers go through the shim, learns from one request all that it can of a principal. A client is resolved when it is
first seen, and again when a plugin announces that its answers have changed.

Suppliers in shadow are left out of the chain that is in force. What they would have given goes beside its answer, and
makes no other difference.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from quotahost.broker.host.chain import Chain, Supplier
from quotahost.broker.host.exemptions import Exemptions
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.messages import EXEMPT, NEWCOMER, Answers, Reason
from quotahost.broker.host.rows import NOBODY, UNLIMITED, Answer, Distinct, Rows, Would
from quotahost.model import QUOTA_TYPES, Client

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
