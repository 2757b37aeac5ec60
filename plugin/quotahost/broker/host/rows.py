"""The answers for one batch while ``resolver`` collects them: each one is kept once, as a row.

Of 20,000 clients that are new at once most have equal answers. So a row's number is all that each costs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from quotahost.broker.host.messages import ALONE, EACH, GROUP, Answers
from quotahost.broker.host.would_be import shadow_text
from quotahost.model import Quota, Scope, ScopeKind

Answer: TypeAlias = tuple[int, float, int]  # scope code, rate, source
Would: TypeAlias = tuple[Answer | None, ...]  # by quota type, what suppliers in shadow would give; () for nothing
Distinct: TypeAlias = frozenset[str] | None  # client-ids whose answers may differ, None if each one's may

UNLIMITED: Final = math.nan  # the same object each time, so that equal rows are found
NOBODY: Final[frozenset[str]] = frozenset()


class Rows:
    """Numbers the rows of a batch, and the texts and sets to which they refer."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` are those to which sources refer."""
        self.answers = Answers()
        self._names = names
        self._rows: dict[tuple[tuple[Answer, ...], int, Would], int] = {}
        self._groups: dict[str, int] = {}
        self._combined: dict[str, int] = {}
        self._distinct: dict[frozenset[str], int] = {}
        self._quotas: dict[tuple[int, int], tuple[Quota, Answer]] = {}  # by the quota's id() and the source
        # The row that was asked for last: most clients that come at once have the same.
        self._last: tuple[tuple[Answer, ...], Distinct, Would, int] = ((), None, (), -1)
        self._ids: dict[int, tuple[Collection[str], frozenset[str]]] = {}  # by the collection's id()

    def row(self, answers: tuple[Answer, ...], distinct: Distinct, would: Would = ()) -> int:
        """The number of the row with these answers, one for each quota type."""
        last_answers, last_distinct, last_would, row = self._last
        if distinct is last_distinct and answers == last_answers and would == last_would:
            return row
        index = EACH if distinct is None else self._distinct.setdefault(distinct, len(self._distinct))
        row = self._row(answers, index, would)
        self._last = (answers, distinct, would, row)
        return row

    def row_alone(self, answers: tuple[Answer, ...]) -> int:
        """The number of the row with these answers, which tell nothing about the principal's other client-ids."""
        return self._row(answers, ALONE)

    def _row(self, answers: tuple[Answer, ...], distinct: int, would: Would = ()) -> int:
        key = (answers, distinct, would)
        if (known := self._rows.get(key)) is not None:
            return known
        row = self._rows[key] = len(self._rows)
        for code, rate, source in answers:
            self.answers.codes.append(code)
            self.answers.rates.append(rate)
            self.answers.sources.append(source)
        self.answers.distinct.append(distinct)
        self.answers.shadows.append(shadow_text(would, list(self._groups), self._names))
        return row

    def finished(self) -> Answers:
        """The answers, once all rows are there."""
        self.answers.groups = list(self._groups)
        self.answers.suppliers = (*self._names, *self._combined)
        self.answers.distinct_ids = list(self._distinct)
        return self.answers

    def answer(self, quota: Quota, source: int) -> Answer:
        """A supplier's quota as Java takes it.

        Raises:
            TypeError: it is no Quota, or its scope no Scope.
        """
        # By identity: a supplier's quotas are few, and hashing or checking one takes longer than to look it up.
        key = (id(quota), source)
        known = self._quotas.get(key)
        if known is None:
            # The quota is kept, too, so that no other gets its id().
            known = self._quotas[key] = (quota, (*self._checked(quota), source))
        return known[1]

    def _checked(self, quota: Quota) -> tuple[int, float]:
        # A wrong type must fail here, as the supplier's failure (contract, sentence 6), and not later as the host's.
        if not isinstance(quota, Quota):
            raise TypeError(f"a supplier must answer a Quota or None, not {quota!r:.200}")
        if not isinstance(quota.scope, Scope):
            raise TypeError(f"a quota's scope must be a Scope, not {quota.scope!r:.200}")
        code = int(quota.scope.kind.value)
        if quota.scope.kind is ScopeKind.GROUP:
            code = self._group(quota.scope.name)
        return code, UNLIMITED if quota.rate is None else float(quota.rate)

    def _group(self, name: str) -> int:
        return GROUP + self._groups.setdefault(name, len(self._groups))

    def source(self, text: str) -> int:
        """The number of a source that is more than a name."""
        return self._combined.setdefault(text, len(self._names) + len(self._combined))

    def frozen(self, ids: Collection[str]) -> frozenset[str]:
        """The client-ids that a supplier returned.

        Raises:
            TypeError: they are no collection of texts.
        """
        known = self._ids.get(id(ids))
        if known is None:
            # A text is a collection of texts, too, but of letters.
            if isinstance(ids, str) or not all(isinstance(each, str) for each in ids):
                raise TypeError(f"distinct_client_ids must answer a collection of texts or None, not {ids!r:.200}")
            known = self._ids[id(ids)] = (ids, frozenset(ids))
        return known[1]
