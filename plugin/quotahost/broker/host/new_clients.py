"""A client's first request, on Python's side: who gives it which quota, and when it is asked about again.

1. Java's inbox hands out the names of clients that its table doesn't know, a batch at a time. Until they are answered
   they are *newcomers*, who share a quota.
2. An exempt client has its answer at once (``exemptions``). For any other the suppliers are asked, for each quota type
   in turn: by default the first that answers gives the quota. With ``supplier.combine=most-constraining`` all of them
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
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from quotahost.api import QuotaSupplier
from quotahost.background import Clock
from quotahost.broker.host.exemptions import Exemptions
from quotahost.broker.host.messages import ALONE, EACH, EXEMPT, GROUP, NEWCOMER, Answers, Batch, Reason, shadow_text
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.broker.host.protocol import Shim
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, ScopeKind, State
from quotahost.settings.broker import Settings

RETRY: Final = 5.0  # seconds between questions for clients whose supplier failed

Whom: TypeAlias = tuple[str | None, str | None]  # principal and client-id, None for any
EVERYONE: Final[Whom] = (None, None)
#: Hears of failures: as ``Guard.report``, and of whom Java doesn't know that one has: in shadow, or in
#: distinct_client_ids(); else None.
Report: TypeAlias = Callable[[str, str, str, BaseException, str | None], None]
_LONGEST: Final = 1024  # characters of a name that is asked about (contract, sentence 11)
# Announcements: for more than these, one walk through all clients costs less than a walk for each.
MOST_APART: Final = 100

Answer: TypeAlias = tuple[int, float, int]  # scope code, rate, source
Would: TypeAlias = tuple[Answer | None, ...]  # by quota type, what suppliers in shadow would give; () for nothing
Distinct: TypeAlias = frozenset[str] | None  # client-ids whose answers may differ, None if each one's may

UNLIMITED: Final = math.nan  # the same object each time, so that equal rows are found
NOBODY: Final[frozenset[str]] = frozenset()
#: Characters of distinct client-ids in a batch: one call to Java takes 64 MB, and a character may have 4 bytes.
MOST_DISTINCT: Final = 12_000_000
NO_ANSWER: Final = (ScopeKind.CLIENT.value, UNLIMITED, -1)  # no supplier has an opinion


class NewClients:
    """Answers for the clients of each batch, and has clients asked about again. Made once in a host's life."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock) -> None:
        self._shim, self._guard, self._clock = shim, guard, clock
        self._lock = threading.Lock()
        self._changed: set[Whom] = set()
        self._retry_at: float | None = None
        self._failed = False  # whether a supplier has failed for somebody since the last retry
        #: The principals of whom Java doesn't know it. EVERYONE stands for those that are too many to ask again apart.
        self._untried: set[Whom] = set()

    def configure(self, suppliers: Sequence[tuple[str, QuotaSupplier]], exempt: Exemptions, settings: Settings) -> None:
        self._suppliers = suppliers
        combine, in_shadow = settings.supplier_combine, settings.shadow.suppliers
        self._untried.clear()
        self._resolver = Resolver(suppliers, exempt, self._report, combine, in_shadow)

    def _report(self, name: str, what: str, consequence: str, error: BaseException, untried: str | None) -> None:
        self._failed = True
        if untried is not None:
            self._untried.add((untried, None) if len(self._untried) < MOST_APART else EVERYONE)
        self._guard.report(name, what, consequence, error)

    def answers_changed(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``; any thread may call. Raises TypeError if a name is neither text nor None."""
        # The error must come up on the plugin's own thread: the host thread no longer knows who announced what.
        for name in (principal, client_id):
            if name is not None and not isinstance(name, str):
                raise TypeError(f"answers_changed takes names (str) or None, not {name!r}")
        # Java keeps nobody with a longer name.
        if max(len(principal or ""), len(client_id or "")) <= _LONGEST:
            with self._lock:
                self._changed.add((principal, client_id))

    def resolve(self, batch: Batch) -> None:
        if not batch.clients:
            return
        answers = self._resolver.answers(batch.clients)
        self._shim.publish(batch, answers)
        # Clients that fail later don't put off a retry that is due already.
        if self._failed and self._retry_at is None:
            self._retry_at = self._clock() + RETRY

    def ask_again(self) -> None:
        """Have those clients come once more whose answers have changed, and when it is time those without one."""
        with self._lock:
            changed, self._changed = self._changed, set()
        for whom in {EVERYONE} if EVERYONE in changed or len(changed) > MOST_APART else changed:
            self._shim.ask_again(*whom)
        if self._retry_at is None or self._clock() < self._retry_at:
            return
        again, self._untried = self._untried, set()
        if self._failed:
            self._failed, self._retry_at = False, self._clock() + RETRY
            self._shim.ask_again_the_failed()
            # While one fails for many, some of them are enough to ask for.
            again, self._untried = again - {EVERYONE}, again & {EVERYONE}
        else:  # for nobody since the last retry
            self._retry_at = None
            # The resolver reports failures to the guard but no success, as it asks for thousands of clients.
            for name, _ in self._suppliers:
                self._guard.heal(name, "quota()")
                self._guard.heal(name, "distinct_client_ids()")
        for whom in again:
            self._shim.ask_again(*whom)


class Resolver:
    """Finds the answers for many clients at once, by one set of suppliers."""

    def __init__(
        self, suppliers: Sequence[tuple[str, QuotaSupplier]], exemptions: Exemptions, report: Report,
        combine: str = "first", in_shadow: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Suppliers by name, in the order in which they are asked; ``combine`` as in ``supplier.combine``."""
        numbered = [(at, name, plugin) for at, (name, plugin) in enumerate(suppliers)]
        self._chain = Chain([one for one in numbered if one[1] not in in_shadow], report, combine)
        self._shadows = frozenset(at for at, name, _ in numbered if name in in_shadow)
        self._trial = Chain(numbered, report, combine, in_shadow=True) if self._shadows else None
        # Answers give their source as an index into these, because a supplier may have the name of a Reason.
        self._names = (*(name for name, _ in suppliers), *Reason)
        of_types = len(QUOTA_TYPES)
        self._exempt = {r: ((EXEMPT, UNLIMITED, at),) * of_types for at, r in enumerate(Reason, len(suppliers))}
        self._exemptions = exemptions

    def answers(self, clients: Sequence[Client]) -> Answers:
        table = AnswerTable(self._names)
        # What is known of a principal, by the row of its client-ids that are not distinct: one is asked about.
        alike: dict[str, tuple[int, frozenset[str]]] = {}
        numbers = table.rows
        for client in clients:
            if reason := self._exemptions.reason(client):
                # Known by its client-id alone, it tells nothing of the principal's others: of each of them Java's table
                # asks the fence.
                by_name = client.principal in self._exemptions.principals
                numbers.append(table.row(self._exempt[reason], NOBODY if by_name else ALONE))
                continue
            known = alike.get(client.principal)
            if known is None or client.client_id in known[1]:
                row, distinct = self._row(client, table)
                known = row, distinct or NOBODY
                if distinct is not None and client.client_id not in distinct:
                    alike[client.principal] = known
            numbers.append(known[0])
        return table

    def _row(self, client: Client, table: AnswerTable) -> tuple[int, Distinct]:
        """The row of a client's answer, and for which client-ids another row may hold; None: for each."""
        answers, distinct = self._chain.resolve(client, table)
        # After a failure the client is asked about again in a moment, with all suppliers.
        if self._trial is None or any(code == NEWCOMER for code, _, _ in answers):
            return table.row(answers, distinct), distinct
        tried, others = self._trial.resolve(client, table)
        would = tuple([one if one[0] != NEWCOMER and one[2] in self._shadows else None for one in tried])
        # Where a supplier in shadow doesn't know its distinct client-ids, those in force must not be asked more often.
        known = distinct if distinct is None or others is None else distinct | others
        row = table.row(_measured(answers, would), known, would if any(would) else ())
        return row, known if others is not None else None


def _measured(answers: tuple[Answer, ...], would: Would) -> tuple[Answer, ...]:
    """The answers; who is unlimited but would not be is measured in the scope in which it would be limited."""
    return tuple([
        (tried[0], rate, source) if tried is not None and math.isnan(rate) else (code, rate, source)
        for (code, rate, source), tried in zip(answers, would, strict=True)
    ])  # fmt: skip


class Chain:
    """Asks some of the suppliers. If one fails, nobody knows what it would have said, and the answer is NEWCOMER.

    No supplier is asked by ``Guard.call``: each client that works would heal the plugin, each that fails be logged.
    """

    def __init__(
        self, suppliers: Sequence[tuple[int, str, Any]], report: Report, combine: str, *, in_shadow: bool = False
    ) -> None:
        """Each supplier with its number, to which sources refer, and its name.

        ``in_shadow``: nothing of the answers is enforced, and sources are suppliers alone.
        """
        self._asks_all = combine == "most-constraining"
        self._suppliers = tuple((at, name, plugin.quota) for at, name, plugin in suppliers)
        self._plugins = [(name, plugin) for _, name, plugin in suppliers]
        self._names = {at: name for at, name, _ in suppliers}
        self._asked = {at: place for place, at in enumerate(self._names, 1)}
        self._report, self._in_shadow = report, in_shadow

    def resolve(self, client: Client, table: AnswerTable) -> tuple[tuple[Answer, ...], Distinct]:
        """The answers by quota type, and which client-ids of the principal may have others."""
        answers = self._ask(client, table)
        # The suppliers behind the one that answered are not asked: what they know makes no difference.
        all_asked = self._asks_all or NO_ANSWER in answers
        asked = len(self._suppliers) if all_asked else max([self._asked[source] for _, _, source in answers])
        return answers, self._distinct(client.principal, asked, table)

    def _ask(self, client: Client, table: AnswerTable) -> tuple[Answer, ...]:
        # One function for all types and suppliers: 20,000 clients that are new at once come here.
        answers: list[Answer] = []
        given: list[tuple[Answer, Quota]] = []  # where all are asked
        for quota_type in QUOTA_TYPES:
            answer = NO_ANSWER
            for at, name, ask in self._suppliers:
                try:
                    quota = ask(client, quota_type)
                    if quota is not None:
                        answer = table.answer(quota, at)
                        if not self._asks_all:
                            break
                        given.append((answer, quota))
                except BaseException as error:  # see plugins.Guard
                    answer = self._failed(client.principal, name, at, error)
                    given.clear()
                    break
            if given:
                answer = self._smallest(given, table)
                given.clear()
            answers.append(answer)
        return tuple(answers)

    def _smallest(self, given: Sequence[tuple[Answer, Quota]], table: AnswerTable) -> Answer:
        # NaN is neither smaller nor larger than any rate; infinity is the largest.
        rates = [math.inf if math.isnan(rate) else rate for (_, rate, _), _ in given]
        answer, quota = given[rates.index(min(rates))]  # the first of several
        # The other rates are for ``quotahost explain``; in the dump they are fields between tabs, behind the name.
        told = zip(given, rates, strict=True)
        others = [f"{self._names[other[2]]}={rate}" for (other, _), rate in told if other is not answer]
        if not others or self._in_shadow:
            return answer
        return table.answer(quota, table.source("\t".join([self._names[answer[2]], *others])))

    def _failed(self, principal: str, name: str, at: int, error: BaseException) -> Answer:
        # The next supplier is not asked, because nobody knows what this one would have answered.
        shadow = "nobody knows what it would give; it is in shadow or behind one that is"
        consequence = shadow if self._in_shadow else "its clients keep their last quota or stay newcomers"
        self._report(name, "quota()", consequence, error, principal if self._in_shadow else None)
        return NEWCOMER, UNLIMITED, at

    def _distinct(self, principal: str, asked: int, table: AnswerTable) -> Distinct:
        """The client-ids that any of the first ``asked`` suppliers names; None if one doesn't know."""
        union = NOBODY
        for name, plugin in self._plugins[:asked]:
            try:
                ask = getattr(plugin, "distinct_client_ids", None)
                if not callable(ask):
                    return None
                ids = ask(principal)
                if ids is None:
                    return None
                if not ids and type(ids) is frozenset:
                    continue
                named = table.frozen(ids)
            except BaseException as error:  # see plugins.Guard
                self._report(name, "distinct_client_ids()", "each client-id may have another quota", error, principal)
                return None
            # The same set for each principal stays one object, which is hashed once.
            union = union | named if union and named else union or named
        return union


class AnswerTable(Answers):
    """The answers for one batch while they are collected.

    Of 20,000 clients that are new at once most have equal answers, so each answer is kept once, as a row, and a row's
    number is all that a client costs.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` are those to which sources refer."""
        super().__init__(suppliers=list(names))
        self._rows: dict[tuple[tuple[Answer, ...], int, Would], int] = {}
        # The row that was asked for last: most clients that come at once have the same.
        self._last: tuple[tuple[Answer, ...], Distinct | int, Would, int] = ((), None, (), -1)
        self._combined: dict[str, int] = {}
        self._room = MOST_DISTINCT
        self._quotas: dict[tuple[int, int], tuple[Quota, Answer]] = {}  # by the quota's id() and the source
        self._ids: dict[int, tuple[Collection[str], frozenset[str]]] = {}  # by the collection's id()

    def row(self, answers: tuple[Answer, ...], distinct: Distinct | int, would: Would = ()) -> int:
        """The number of the row with these answers, one for each quota type; ``distinct`` may also be ALONE."""
        last_answers, last_distinct, last_would, row = self._last
        if distinct is last_distinct and answers == last_answers and would == last_would:
            return row
        known_ids = EACH if distinct is None else distinct if isinstance(distinct, int) else self._numbered(distinct)
        key = (answers, known_ids, would)
        if key not in self._rows:
            self._rows[key] = len(self._rows)
            for code, rate, source in answers:
                self.codes.append(code)
                self.rates.append(rate)
                self.sources.append(source)
            self.distinct.append(known_ids)
            self.shadows.append(shadow_text(would, list(self.groups), self.suppliers))
        row = self._rows[key]
        self._last = answers, distinct, would, row
        return row

    def _numbered(self, ids: frozenset[str]) -> int:
        """The number of a set of distinct client-ids; EACH, which is true of any principal, if there is no room."""
        if ids not in self.distinct_ids:
            size = sum(len(name) + 2 for name in ids)  # with the bytes of each one's length
            if size > self._room:
                return EACH
            self._room -= size
            self.distinct_ids[ids] = len(self.distinct_ids)
        return self.distinct_ids[ids]

    def answer(self, quota: Quota, source: int) -> Answer:
        """A supplier's quota as Java takes it. Raises TypeError if it is no Quota."""
        # By identity: a supplier's quotas are few, and hashing or checking one takes longer than to look it up.
        key = (id(quota), source)
        known = self._quotas.get(key)
        if known is None:
            # A wrong type must fail here, as the supplier's failure (contract, sentence 6), not later as the host's.
            if not isinstance(quota, Quota):
                raise TypeError(f"a supplier must answer a Quota or None, not {quota!r:.200}")
            code = int(quota.scope.kind.value)
            if quota.scope.kind is ScopeKind.GROUP:
                code = GROUP + self.groups.setdefault(quota.scope.name, len(self.groups))
            # The quota is kept, too, so that no other gets its id().
            known = quota, (code, UNLIMITED if quota.rate is None else float(quota.rate), source)
            self._quotas[key] = known
        return known[1]

    def source(self, text: str) -> int:
        """The number of a source that is more than a name."""
        if text not in self._combined:
            self._combined[text] = len(self.suppliers)
            self.suppliers.append(text)
        return self._combined[text]

    def frozen(self, ids: Collection[str]) -> frozenset[str]:
        """The client-ids that a supplier returned. Raises TypeError if they are no collection of texts."""
        known = self._ids.get(id(ids))
        if known is None:
            named = frozenset(ids)  # first, since of a generator nothing is left by the second time
            # A text is a collection of texts, too, but of letters.
            if isinstance(ids, str) or not all(isinstance(name, str) for name in named):
                raise TypeError(f"distinct_client_ids must answer a collection of texts or None, not {ids!r:.200}")
            known = self._ids[id(ids)] = (ids, named)
        return known[1]


_WITH_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)  # the types of Broker.usage


def measured(settings: Settings, plugins: PluginSet, guard: Guard) -> frozenset[QuotaType]:
    """For which quota types clients without a quota are measured one by one.

    A client that Kafka measures costs a sensor. So a client without a quota has none of its own (Java's Scopes), but
    where a factor may act on what it uses, a plugin reads it (``needs_usage``), or a supplier in shadow would limit it.
    """
    types: set[QuotaType] = set()
    if settings.factor_source is not None or settings.fallback_action == State.PAUSE:
        types |= set(settings.factor_quota_types)
    for _, _, of_source in plugins.typed_sources():
        types |= set(of_source)
    if settings.shadow.suppliers:
        types |= set(QUOTA_TYPES)
    for loaded in plugins:
        # A property is a call of the plugin, too.
        wants = partial(getattr, loaded.plugin, "needs_usage", False)
        if guard.call(loaded.context.name, "needs_usage", "it may miss clients without a quota", wants):
            types |= set(_WITH_BYTES)
    return frozenset(types)
