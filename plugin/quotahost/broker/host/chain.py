"""Suppliers in their order, and the rule by which their answers become one quota (``supplier.combine``).

By default the first supplier that answers gives the quota. With ``supplier.combine=most-constraining`` all of them are
asked, and the smallest rate decides, whatever scope shares it: unlimited is the largest, and of equal rates that of the
first supplier decides. ``resolver`` asks the chain of those that are in force, and, while some are in shadow, the chain
of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from quotahost.broker.host.guard import Guard
from quotahost.broker.host.messages import NEWCOMER
from quotahost.broker.host.rows import NOBODY, UNLIMITED, Answer, Distinct, Rows
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, ScopeKind

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
