"""The host asks suppliers for a new client's quotas (``supplier.combine``), and asks again when answers may change.

1. Java's inbox returns a batch of clients that Java's table doesn't know. Until the host answers for these clients,
   they are *newcomers*, which share a quota. Exempt clients never come here (``exemptions``).
2. The host asks the suppliers, for each client and quota type. By default the first supplier that answers gives the
   quota. With ``supplier.combine=most-constraining`` the host asks all suppliers, and the smallest rate wins, whatever
   its scope. Unlimited is the largest rate; the first supplier wins if rates are equal. If a supplier fails, nobody
   knows its answer: the client stays a newcomer, or keeps the quota that it has in Java's table.
3. The suppliers also say which client-ids of the principal may have other quotas. So one request tells Java's table as
   much as possible about a principal.
4. The quotas of suppliers in shadow are published beside the answer, and are not enforced.
5. ``AnswerTable`` collects the answers of a batch, and the host publishes them in one call.
6. The host asks for a client again when a plugin announces changed answers (``Context.answers_changed``), and every
   RETRY seconds while a supplier fails. These clients come through the inbox, too, batch by batch: one batch of 50,000
   clients would take longer than the lease lasts.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeAlias

from quotahost.api import QuotaSupplier
from quotahost.base.background import Clock
from quotahost.base.text import printable
from quotahost.broker.host.messages import EACH, NEWCOMER, Answer, Batch, Row, shadow_text
from quotahost.broker.host.plugins import Guard, PluginSet
from quotahost.broker.host.protocol import Shim
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, ScopeKind, State
from quotahost.settings.broker import Settings

RETRY: Final = 5.0  # seconds between retries for clients whose supplier failed

Whom: TypeAlias = tuple[str | None, str | None]  # principal and client-id, None for any
EVERYONE: Final[Whom] = (None, None)
# Each announcement is a call, and Java may walk through all its clients: more than this become one for all clients.
MOST_APART: Final = 100

Would: TypeAlias = tuple[Answer | None, ...]  # the would-be quotas by quota type; () if there are none
Distinct: TypeAlias = frozenset[str] | None  # the client-ids whose quotas may differ; None: any client-id's may

NOBODY: Final[frozenset[str]] = frozenset()
#: The maximum of characters in a batch's distinct client-ids and would-be quotas together. A call to Java has 64 MB at
#: most, the group names of 2,000 clients may take half of it, and a character may take 4 bytes.
MOST_CHARACTERS: Final = 7_000_000
NO_ANSWER: Final = Answer(ScopeKind.CLIENT.value, None)  # no supplier has an opinion


class NewClients:
    """Answers for the clients of each batch, and has Java return clients again. Each host has one such object."""

    def __init__(self, shim: Shim, guard: Guard, clock: Clock) -> None:
        self._shim, self._guard, self._clock = shim, guard, clock
        self._lock = threading.Lock()
        self._changed: set[Whom] = set()
        self._retry_at = clock() + RETRY
        self._failed = False  # whether a supplier has failed for any client since the last retry
        #: Principals whose failure Java doesn't know (``AnswerTable.untried``); EVERYONE in place of too many.
        self._untried: set[Whom] = set()

    def configure(self, suppliers: Sequence[tuple[str, QuotaSupplier]], settings: Settings) -> None:
        combine, in_shadow = settings.supplier_combine, settings.shadow.suppliers
        self._suppliers, self._in_shadow = suppliers, in_shadow
        self._chain = Chain([one for one in suppliers if one[0] not in in_shadow], self._guard, combine)
        self._trial = Chain(suppliers, self._guard, combine, in_shadow=True) if in_shadow else None
        self._untried.clear()

    def answers_changed(self, principal: str | None = None, client_id: str | None = None) -> None:
        """``Context.answers_changed``; any thread may call. Raises TypeError if a name is neither text nor None."""
        # Raise the error on the plugin's own thread: the host thread doesn't know which plugin made an announcement.
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
        """Have Java return clients again: if their answers have changed, and every RETRY if their supplier failed."""
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
            # If a supplier fails for more than MOST_APART principals, EVERYONE waits until no supplier fails.
            again, self._untried = again - {EVERYONE}, again & {EVERYONE}
        else:
            # Chain reports failures to the guard, but no success, because it asks for thousands of clients.
            for name, _ in self._suppliers:
                self._guard.heal(name, "quota()")
                self._guard.heal(name, "distinct_client_ids()")
        for whom in again:
            self._shim.ask_again(*whom)

    def answers(self, clients: Sequence[Client]) -> AnswerTable:
        table = AnswerTable()
        table.numbers = [self._row(client, table) for client in clients]
        return table

    def _row(self, client: Client, table: AnswerTable) -> int:
        answers, distinct = self._chain.resolve(client, table)
        # After a failure skip the suppliers in shadow: the host soon asks for this client again.
        if self._trial is None or any(answer.code == NEWCOMER for answer in answers):
            return table.row(answers, distinct)
        tried, others = self._trial.resolve(client, table)
        would = tuple([one if one.code != NEWCOMER and one.supplier in self._in_shadow else None for one in tried])
        # Ignore a None of the suppliers in shadow: with EACH, Java would ask the suppliers in force more often.
        ids = distinct if distinct is None or others is None else table.union([distinct, others])
        return table.row(_measured(answers, would), ids, would)


def _note(these: set[Whom], whom: Whom) -> None:
    """Add ``whom``, or EVERYONE if there are MOST_APART entries already."""
    these.add(whom if len(these) < MOST_APART else EVERYONE)


def _measured(answers: tuple[Answer, ...], would: Would) -> tuple[Answer, ...]:
    """The answers. An unlimited answer gets the scope of the would-be quota, so that Kafka measures this scope."""
    return tuple([
        answer if tried is None or answer.rate is not None else answer._replace(code=tried.code, group=tried.group)
        for answer, tried in zip(answers, would, strict=True)
    ])  # fmt: skip


class Chain:
    """Asks some of the suppliers. If one of them fails, its answer is unknown, and the result is NEWCOMER.

    It doesn't use ``Guard.call``: a success for one client would heal the plugin, and each later failure be logged.
    """

    def __init__(
        self, suppliers: Sequence[tuple[str, Any]], guard: Guard, combine: str, *, in_shadow: bool = False
    ) -> None:
        """``suppliers``: (name, plugin). ``in_shadow``: no answer is enforced, or names other suppliers' rates."""
        self._asks_all = combine == "most-constraining"
        self._suppliers = tuple(suppliers)
        self._asked = {name: place for place, (name, _) in enumerate(suppliers, 1)}
        self._guard, self._in_shadow = guard, in_shadow

    def resolve(self, client: Client, table: AnswerTable) -> tuple[tuple[Answer, ...], Distinct]:
        """Return the answers by quota type, and the client-ids of the principal that may have other answers."""
        answers = self._ask(client, table)
        # The suppliers after the one that answered make no difference, so nobody asks them for client-ids.
        all_asked = self._asks_all or NO_ANSWER in answers
        asked = len(self._suppliers) if all_asked else max([self._asked[answer.supplier] for answer in answers])
        return answers, self._distinct(client.principal, asked, table)

    def _ask(self, client: Client, table: AnswerTable) -> tuple[Answer, ...]:
        # One function for all types and suppliers, for speed: 20,000 new clients may come at once.
        answers: list[Answer] = []
        given: list[Answer] = []  # used if all suppliers are asked
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
        smallest = given[rates.index(min(rates))]  # index() returns the first of equal rates
        # ``quotahost explain`` shows the other rates. The dump has them after the supplier's name, separated by tabs.
        others = [f"{other.supplier}={rate}" for other, rate in zip(given, rates, strict=True) if other is not smallest]
        if not others or self._in_shadow:
            return smallest
        return smallest._replace(supplier="\t".join([smallest.supplier, *others]))

    def _failed(self, client: Client, table: AnswerTable, name: str, error: BaseException) -> Answer:
        # The next supplier must not answer instead: this one might have answered.
        shadow = "its would-be quotas are unknown; it is in shadow, or follows a supplier in shadow"
        who = f"user {printable(client.principal)}, client-id {printable(client.client_id)}"
        kept = f"its clients, such as {who}, keep their last quota or stay newcomers"
        self._guard.report(name, "quota()", shadow if self._in_shadow else kept, error)
        table.failed = True
        if self._in_shadow:
            table.untried.add(client.principal)
        return Answer(NEWCOMER, None, "", name)

    def _distinct(self, principal: str, asked: int, table: AnswerTable) -> Distinct:
        """The client-ids that any of the first ``asked`` suppliers names; None if one of them doesn't know or fails."""
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
    """Collects the answers for one batch.

    Most of 20,000 new clients have equal answers. So each answer is a row, and each client has only a row's number.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []  # the number of the row of each client of the batch, in order
        self.rows: dict[Row, int] = {}  # each row and its number, in order
        self.distinct_ids: dict[frozenset[str], int] = {}  # each set of client-ids and its number, in order
        self.failed = False  # whether a supplier failed
        #: The principals for which a supplier failed, though Java gets an answer and doesn't know of the failure.
        self.untried: set[str] = set()
        self._room = MOST_CHARACTERS
        self._quotas: dict[tuple[int, str], tuple[Quota, Answer]] = {}  # by the quota's id() and the supplier
        self._checked: set[frozenset[str]] = set()
        self._unions: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        self._numbers: dict[frozenset[str], int] = {}  # the number in distinct_ids, or EACH if the set has no room

    def row(self, answers: tuple[Answer, ...], distinct: Distinct, would: Would = ()) -> int:
        row = Row(answers, EACH if distinct is None else self._numbered(distinct), shadow_text(would))
        if row not in self.rows and not self._takes(len(row.shadow)):
            row = row._replace(shadow="")  # would-be quotas are only shown, and may be left out
        return self.rows.setdefault(row, len(self.rows))

    def _numbered(self, ids: frozenset[str]) -> int:
        """The number of a set of distinct client-ids. If there is no room, EACH, which is correct for any principal."""
        if ids not in self._numbers:
            self._numbers[ids] = EACH
            if self._takes(len("".join(ids)) + 2 * len(ids)):  # each name's length takes bytes, too
                self._numbers[ids] = self.distinct_ids[ids] = len(self.distinct_ids)
        return self._numbers[ids]

    def _takes(self, characters: int) -> bool:
        if characters > self._room:
            return False
        self._room -= characters
        return True

    def answer(self, quota: Quota, supplier: str) -> Answer:
        """A supplier's quota as Java takes it. Raises TypeError if it is no Quota."""
        # The key is the quota's id(): a supplier has few quotas, and hashing or checking a quota takes longer.
        key = (id(quota), supplier)
        kept = self._quotas.get(key)
        if kept is None:
            # A wrong type must count as the supplier's failure (contract, sentence 6), not later as the host's.
            if not isinstance(quota, Quota):
                raise TypeError(f"a supplier must answer a Quota or None, not {quota!r:.200}")
            kind, group = quota.scope.kind, quota.scope.name
            rate = None if quota.rate is None else float(quota.rate)
            # Keep the quota itself, too, so that no other quota gets its id().
            kept = self._quotas[key] = quota, Answer(kind.value, rate, group, supplier)
        return kept[1]

    def frozen(self, ids: Collection[str]) -> frozenset[str]:
        """The client-ids that a supplier returned. Raises TypeError if ``ids`` is no collection of strings."""
        named = frozenset(ids)  # returns a frozenset itself, which has its hash already
        # A string is a collection of strings, too, but its items are letters.
        if isinstance(ids, str) or not (named in self._checked or all(isinstance(name, str) for name in named)):
            raise TypeError(f"distinct_client_ids must answer a collection of texts or None, not {ids!r:.200}")
        self._checked.add(named)
        return named

    def union(self, sets: Sequence[frozenset[str]]) -> frozenset[str]:
        """The union, or a single set itself. The same sets return the same object: 100,000 names are hashed once."""
        key = tuple(filter(None, sets))
        if key not in self._unions:
            self._unions[key] = key[0] if len(key) == 1 else NOBODY.union(*key)
        return self._unions[key]


def measured(settings: Settings, plugins: PluginSet) -> frozenset[QuotaType]:
    """The quota types for which Kafka measures each client without a quota apart.

    Each client that Kafka measures costs a sensor. So a client without a quota has its own sensor (Java's Scopes) only
    if a factor may act on its rate, a plugin reads its rate (``needs_usage``), or a supplier in shadow may limit it.
    """
    types: set[QuotaType] = set()
    if settings.factor_source is not None or settings.fallback_action == State.PAUSE:
        types |= set(settings.factor_quota_types)
    types.update(*(of_source for _, _, of_source in plugins.typed_sources))
    if settings.shadow.suppliers:
        types |= set(QUOTA_TYPES)
    if any(getattr(loaded.plugin, "needs_usage", False) for loaded in plugins):
        types |= {QuotaType.PRODUCE, QuotaType.FETCH}  # the types of Broker.usage
    return frozenset(types)
