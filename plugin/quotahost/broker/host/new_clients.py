"""A client's first request, in Python: who gives its quota (``supplier.combine``), when it is asked about again.

1. Java's inbox hands out the names of clients that its table doesn't know, a batch at a time. Until they are answered
   they are *newcomers*, who share a quota.
2. Exempt clients never come here (``exemptions``). For any other the suppliers are asked, for each quota type in turn:
   by default the first that answers gives the quota. With ``supplier.combine=most-constraining`` all of them
   are asked, and the smallest rate decides, whatever scope shares it: unlimited is the largest, and of equal rates that
   of the first supplier decides. If a supplier fails, nobody knows what it would have answered: the client stays a
   newcomer, or keeps in Java the quota that it had.
3. The suppliers also say which of the principal's client-ids may have other answers. So Java's table learns from one
   request all that it can of a principal.
4. Suppliers in shadow are left out. What they would have given goes beside the answer, and makes no other difference.
5. The answers of a batch are collected in an ``AnswerTable`` and published in one call.
6. Clients are asked about again when a plugin announces that answers have changed (``Context.answers_changed``), and
   every RETRY seconds as long as a supplier fails. They come by the inbox as new ones do, a batch at a time: to ask for
   50,000 at once would outlast the lease.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeAlias

from quotahost.api import QuotaSupplier
from quotahost.base.background import Clock
from quotahost.base.text import printable
from quotahost.broker.host.messages import EACH, GROUP, NEWCOMER, Answer, Batch, Row, shadow_text
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.broker.host.protocol import Shim
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, ScopeKind, State
from quotahost.settings.broker import Settings

RETRY: Final = 5.0  # seconds between questions for clients whose supplier failed

Whom: TypeAlias = tuple[str | None, str | None]  # principal and client-id, None for any
EVERYONE: Final[Whom] = (None, None)
# Announcements: for more than these, one walk through all clients costs less than a walk for each.
MOST_APART: Final = 100

Would: TypeAlias = tuple[Answer | None, ...]  # by quota type, what suppliers in shadow would give; () for nothing
Distinct: TypeAlias = frozenset[str] | None  # client-ids whose answers may differ, None if each one's may

NOBODY: Final[frozenset[str]] = frozenset()
#: Characters of distinct client-ids, and of what would be, in a batch: one call to Java takes 64 MB, of which the
#: groups of 2,000 clients may have half, and a character may have 4 bytes.
MOST_CHARACTERS: Final = 7_000_000
NO_ANSWER: Final = Answer(ScopeKind.CLIENT.value, None)  # no supplier has an opinion


class NewClients:
    """Answers for the clients of each batch, and has clients asked about again. Made once in a host's life."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock) -> None:
        self._shim, self._guard, self._clock = shim, guard, clock
        self._lock = threading.Lock()
        self._changed: set[Whom] = set()
        self._retry_at = clock() + RETRY
        self._failed = False  # whether a supplier has failed for somebody since then
        #: The principals of whom Java doesn't know it. EVERYONE stands for those that are too many to ask again apart.
        self._untried: set[Whom] = set()

    def configure(self, suppliers: Sequence[tuple[str, QuotaSupplier]], settings: Settings) -> None:
        combine, in_shadow = settings.supplier_combine, settings.shadow.suppliers
        self._suppliers, self._in_shadow = suppliers, in_shadow
        self._chain = Chain([one for one in suppliers if one[0] not in in_shadow], self._guard, combine)
        self._trial = Chain(suppliers, self._guard, combine, in_shadow=True) if in_shadow else None
        self._untried.clear()

    def answers_changed(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``; any thread may call. Raises TypeError if a name is neither text nor None."""
        # The error must come up on the plugin's own thread: the host thread no longer knows who announced what.
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"answers_changed takes names (str) or None, not {name!r}")
        with self._lock:
            _note(self._changed, (principal, client_id))

    def resolve(self, batch: Batch) -> None:
        if not batch.clients:
            return
        answers = self.answers(batch.clients)
        self._shim.publish(answers.numbers, answers.rows, answers.distinct_ids)
        self._failed = self._failed or answers.failed
        for principal in answers.untried:
            _note(self._untried, (principal, None))

    def ask_again(self) -> None:
        """Have those clients come once more whose answers have changed, and when it is time those without one."""
        with self._lock:
            changed, self._changed = self._changed, set()
        for whom in {EVERYONE} if EVERYONE in changed else changed:
            self._shim.ask_again(*whom)
        if self._clock() < self._retry_at:
            return
        self._retry_at = self._clock() + RETRY
        again, self._untried = self._untried, set()
        if self._failed:
            self._failed = False
            self._shim.ask_again_the_failed()
            # While one fails for many, some of them are enough to ask for.
            again, self._untried = again - {EVERYONE}, again & {EVERYONE}
        else:
            # The chains report failures to the guard but no success, as they ask for thousands of clients.
            for name, _ in self._suppliers:
                self._guard.heal(name, "quota()")
                self._guard.heal(name, "distinct_client_ids()")
        for whom in again:
            self._shim.ask_again(*whom)

    def answers(self, clients: Sequence[Client]) -> AnswerTable:
        table = AnswerTable()
        for client in clients:
            table.numbers.append(self._row(client, table))
        return table

    def _row(self, client: Client, table: AnswerTable) -> int:
        answers, distinct = self._chain.resolve(client, table)
        # After a failure the client is asked about again in a moment, with all suppliers.
        if self._trial is None or any(answer.code == NEWCOMER for answer in answers):
            return table.row(answers, distinct)
        tried, others = self._trial.resolve(client, table)
        would = tuple([one if one.code != NEWCOMER and one.supplier in self._in_shadow else None for one in tried])
        # Where a supplier in shadow doesn't know its distinct client-ids, those in force must not be asked more often.
        known = distinct if distinct is None or others is None else table.union([distinct, others])
        return table.row(_measured(answers, would), known, would)


def _note(these: set[Whom], whom: Whom) -> None:
    """Add one, or EVERYONE in the place of more than MOST_APART."""
    these.add(whom if len(these) < MOST_APART else EVERYONE)


def _measured(answers: tuple[Answer, ...], would: Would) -> tuple[Answer, ...]:
    """The answers; who is unlimited but would not be is measured in the scope in which it would be limited."""
    return tuple([
        answer if tried is None or answer.rate is not None else answer._replace(code=tried.code, group=tried.group)
        for answer, tried in zip(answers, would, strict=True)
    ])  # fmt: skip


class Chain:
    """Asks some of the suppliers. If one fails, nobody knows what it would have said, and the answer is NEWCOMER.

    No supplier is asked by ``Guard.call``: each client that works would heal the plugin, each that fails be logged.
    """

    def __init__(
        self, suppliers: Sequence[tuple[str, Any]], guard: Guard, combine: str, *, in_shadow: bool = False
    ) -> None:
        """Suppliers by name. ``in_shadow``: nothing of the answers is enforced, and no other rates stand beside."""
        self._asks_all = combine == "most-constraining"
        self._suppliers = tuple(suppliers)
        self._asked = {name: place for place, (name, _) in enumerate(suppliers, 1)}
        self._guard, self._in_shadow = guard, in_shadow

    def resolve(self, client: Client, table: AnswerTable) -> tuple[tuple[Answer, ...], Distinct]:
        """The answers by quota type, and which client-ids of the principal may have others."""
        answers = self._ask(client, table)
        # The suppliers behind the one that answered are not asked: what they know makes no difference.
        all_asked = self._asks_all or NO_ANSWER in answers
        asked = len(self._suppliers) if all_asked else max([self._asked[answer.supplier] for answer in answers])
        return answers, self._distinct(client.principal, asked, table)

    def _ask(self, client: Client, table: AnswerTable) -> tuple[Answer, ...]:
        # One function for all types and suppliers: 20,000 clients that are new at once come here.
        answers: list[Answer] = []
        given: list[Answer] = []  # where all are asked
        for quota_type in QUOTA_TYPES:
            answer = NO_ANSWER
            for name, plugin in self._suppliers:
                try:
                    quota = plugin.quota(client, quota_type)
                    if quota is not None:
                        answer = table.answer(quota, name)
                        if not self._asks_all:
                            break
                        given.append(answer)
                except BaseException as error:  # see plugins.Guard
                    answer = self._failed(client, table, name, error)
                    given.clear()
                    break
            if given:
                answer = self._smallest(given)
                given.clear()
            answers.append(answer)
        return tuple(answers)

    def _smallest(self, given: Sequence[Answer]) -> Answer:
        rates = [math.inf if answer.rate is None else answer.rate for answer in given]
        smallest = given[rates.index(min(rates))]  # the first of several
        # The other rates are for ``quotahost explain``; in the dump they are fields between tabs, behind the name.
        told = zip(given, rates, strict=True)
        others = [f"{other.supplier}={rate}" for other, rate in told if other is not smallest]
        if not others or self._in_shadow:
            return smallest
        return smallest._replace(supplier="\t".join([smallest.supplier, *others]))

    def _failed(self, client: Client, table: AnswerTable, name: str, error: BaseException) -> Answer:
        # The next supplier is not asked, because nobody knows what this one would have answered.
        shadow = "nobody knows what it would give; it is in shadow or behind one that is"
        who = f"user {printable(client.principal)}, client-id {printable(client.client_id)}"
        kept = f"its clients, such as {who}, keep their last quota or stay newcomers"
        self._guard.report(name, "quota()", shadow if self._in_shadow else kept, error)
        table.failed = True
        if self._in_shadow:
            table.untried.add(client.principal)
        return Answer(NEWCOMER, None, "", name)

    def _distinct(self, principal: str, asked: int, table: AnswerTable) -> Distinct:
        """The client-ids that any of the first ``asked`` suppliers names; None if one doesn't know."""
        all_named: list[frozenset[str]] = []
        for name, plugin in self._suppliers[:asked]:
            try:
                ask = getattr(plugin, "distinct_client_ids", None)
                ids = ask(principal) if callable(ask) else None
                if ids is None:
                    return None
                all_named.append(table.frozen(ids))
            except BaseException as error:  # see plugins.Guard
                self._guard.report(name, "distinct_client_ids()", "each client-id may have another quota", error)
                table.failed = True
                table.untried.add(principal)
                return None
        return table.union(all_named)


class AnswerTable:
    """The answers for one batch while they are collected.

    Of 20,000 clients that are new at once most have equal answers, so each answer is kept once, as a row, and a row's
    number is all that a client costs.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []  # for each client of the batch, in order, the number of its row
        self.rows: dict[Row, int] = {}  # numbered in order
        self.distinct_ids: dict[frozenset[str], int] = {}  # likewise
        self.failed = False  # a supplier
        self.untried: set[str] = set()  # the principals of whom Java doesn't know that one failed
        self._room = MOST_CHARACTERS
        self._quotas: dict[tuple[int, str], tuple[Quota, Answer]] = {}  # by the quota's id() and the supplier
        self._checked: set[frozenset[str]] = set()
        self._unions: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        self._numbers: dict[frozenset[str], int] = {}  # also EACH, of those for which there is no room

    def row(self, answers: tuple[Answer, ...], distinct: Distinct, would: Would = ()) -> int:
        row = Row(answers, EACH if distinct is None else self._numbered(distinct), shadow_text(would))
        if row not in self.rows and not self._takes(len(row.shadow)):
            row = row._replace(shadow="")  # it is for people to read, and may be left out
        return self.rows.setdefault(row, len(self.rows))

    def _numbered(self, ids: frozenset[str]) -> int:
        """The number of a set of distinct client-ids; EACH, which is true of any principal, if there is no room."""
        if ids not in self._numbers:
            self._numbers[ids] = EACH
            if self._takes(sum(len(name) + 2 for name in ids)):  # with the bytes of each one's length
                self._numbers[ids] = self.distinct_ids[ids] = len(self.distinct_ids)
        return self._numbers[ids]

    def _takes(self, characters: int) -> bool:
        if characters > self._room:
            return False
        self._room -= characters
        return True

    def answer(self, quota: Quota, supplier: str) -> Answer:
        """A supplier's quota as Java takes it. Raises TypeError if it is no Quota."""
        # By identity: a supplier's quotas are few, and hashing or checking one takes longer than to look it up.
        key = (id(quota), supplier)
        known = self._quotas.get(key)
        if known is None:
            # A wrong type must fail here, as the supplier's failure (contract, sentence 6), not later as the host's.
            if not isinstance(quota, Quota):
                raise TypeError(f"a supplier must answer a Quota or None, not {quota!r:.200}")
            kind, group = quota.scope.kind, quota.scope.name
            code = GROUP if kind is ScopeKind.GROUP else kind.value
            rate = None if quota.rate is None else float(quota.rate)
            # The quota is kept, too, so that no other gets its id().
            known = self._quotas[key] = quota, Answer(code, rate, group, supplier)
        return known[1]

    def frozen(self, ids: Collection[str]) -> frozenset[str]:
        """The client-ids that a supplier returned. Raises TypeError if they are no collection of texts."""
        named = frozenset(ids)  # a frozenset is taken as it is, and has its hash already
        # A text is a collection of texts, too, but of letters.
        if isinstance(ids, str) or not (named in self._checked or all(isinstance(name, str) for name in named)):
            raise TypeError(f"distinct_client_ids must answer a collection of texts or None, not {ids!r:.200}")
        self._checked.add(named)
        return named

    def union(self, sets: Sequence[frozenset[str]]) -> frozenset[str]:
        """The same sets make one object, which may have 100,000 names, hashed once."""
        key = tuple(sets)
        if key not in self._unions:
            self._unions[key] = NOBODY.union(*sets)
        return self._unions[key]


_WITH_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)  # the types of Broker.usage


def measured(settings: Settings, plugins: PluginSet) -> frozenset[QuotaType]:
    """For which quota types clients without a quota are measured one by one.

    A client that Kafka measures costs a sensor. So a client without a quota has none of its own (Java's Scopes), but
    where a factor may act on what it uses, a plugin reads it (``needs_usage``), or a supplier in shadow would limit it.
    """
    types: set[QuotaType] = set()
    if settings.factor_source is not None or settings.fallback_action == State.PAUSE:
        types |= set(settings.factor_quota_types)
    for _, _, of_source in plugins.typed_sources:
        types |= set(of_source)
    if settings.shadow.suppliers:
        types |= set(QUOTA_TYPES)
    for loaded in plugins:
        if getattr(loaded.plugin, "needs_usage", False):
            types |= set(_WITH_BYTES)
    return frozenset(types)
