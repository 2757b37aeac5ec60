"""Tests answers for new clients: which supplier decides, the principal's other client-ids, and suppliers in shadow."""

import logging
import math
import tracemalloc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.host.messages import EACH, NEWCOMER, Answer, encode, would_be
from quotahost.broker.host.new_clients import EVERYONE, MOST_APART, AnswerTable, NewClients
from quotahost.broker.host.plugins import Guard
from quotahost.broker.host.protocol import Shim
from quotahost.model import QUOTA_TYPES, Client, Quota, QuotaType, Scope
from tests.fakes.plugin_context import Clock, fails, settings
from tests.fakes.shim import FakeShim, serve
from tests.unit.broker.host.test_protocol import Java

ALICE, OTHER = Client("alice", "app"), Client("alice", "other")
COMBINE = st.sampled_from(["first", "most-constraining"])
QUOTAS = st.none() | st.builds(Quota, st.none() | st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([
    Scope.CLIENT, Scope.USER, Scope.CLIENT_ID, Scope.BROKER, Scope.group("g")]))  # fmt: skip


@dataclass(frozen=True)
class Supplier:
    """A supplier made of two functions; ``distinct_client_ids`` may be missing."""

    quota: Callable[..., Any]
    distinct_client_ids: Callable[[str], Any] | None = None


def supplier(quota: Quota | None, distinct: Any = None) -> Supplier:
    """A supplier that gives all clients this quota and returns these distinct client-ids; None if it has no method."""
    return Supplier(lambda _client, _type: quota, None if distinct is None else lambda _principal: distinct)


def resolved(
    suppliers: Mapping[str, Supplier], clients: Sequence[Client], combine: str = "first",
    in_shadow: Collection[str] = (), shim: FakeShim | None = None,
) -> AnswerTable:  # fmt: skip
    """The answers for these clients."""
    asked = NewClients(shim := shim or FakeShim(), Guard(shim), Clock())
    named: list[tuple[str, Any]] = list(suppliers.items())
    shadow = ",".join(f"supplier.{name}" for name in in_shadow)
    asked.configure(named, settings(supplier=",".join(suppliers) or "nobody", supplier__combine=combine, shadow=shadow))
    return asked.answers(clients)


class Found(NamedTuple):
    """The results for PRODUCE of one client: the answer, the would-be answer, and the distinct client-ids."""

    answer: Answer
    would: Answer | None
    distinct: frozenset[str] | int


def tried(
    suppliers: Mapping[str, Supplier], in_shadow: Collection[str] = (), combine: str = "first",
    shim: FakeShim | None = None,
) -> list[Found]:  # fmt: skip
    """The results for ALICE and OTHER."""
    answers = resolved(suppliers, [ALICE, OTHER], combine, in_shadow, shim)
    rows, ids = list(answers.rows), list(answers.distinct_ids)
    found: list[Found] = []
    for row in (rows[number] for number in answers.numbers):
        answer = row.answers[0]._replace(supplier=row.answers[0].supplier.partition("\t")[0])
        distinct = row.distinct if row.distinct < 0 else ids[row.distinct]
        found.append(Found(answer, would_be(row.shadow, QUOTA_TYPES[0]), distinct))
    return found


def test_sets_of_client_ids_that_are_too_many_for_one_call_give_way_to_a_question_for_each() -> None:
    # Each user has 1,000 client-ids in common with the others, and one of its own. All sets together have 75 MB.
    common = frozenset(f"{n:0250}" for n in range(1000))
    apart = Supplier(lambda *_: Quota(1.0), lambda principal: common | {principal})
    clients = [Client(f"u{n}", "app") for n in range(300)]
    answers = resolved({"mine": apart}, clients)
    Shim(Java()).publish(answers.numbers, answers.rows, answers.distinct_ids)
    distinct = [row.distinct for row in answers.rows]
    assert (list(answers.distinct_ids)[distinct[0]], distinct[-1]) == (common | {"u0"}, EACH)


def test_two_suppliers_that_name_many_client_ids_each_hold_up_no_host() -> None:
    """Merging both sets for each user took minutes, and meanwhile the host didn't renew the lease."""
    one, other = (supplier(None, frozenset(f"{kind}{n:060}" for n in range(100_000))) for kind in "ab")
    clients = [Client(f"u{n}", f"a{n:060}") for n in range(10_000)]
    answers = resolved({"one": one, "other": other}, clients)
    assert {row.distinct for row in answers.rows} == {EACH}, "one call can't take so many client-ids"
    few = resolved({"one": supplier(None, frozenset("ab")), "other": supplier(None, frozenset("bc"))}, clients)
    assert list(few.distinct_ids) == [frozenset("abc")]


def test_groups_by_long_names_that_strangers_choose_end_no_host() -> None:
    chain = {"new": Supplier(lambda client, _: Quota(1.0, Scope.group(client.principal))), "old": supplier(None)}
    clients = [Client(f"{n:04}" + "\N{SNOWMAN WITHOUT SNOW}\N{PILE OF POO}" * 510, "app") for n in range(2000)]
    for in_shadow in ((), ("new",)):
        answers = resolved(chain, clients, in_shadow=in_shadow)
        Shim(Java()).publish(answers.numbers, answers.rows, answers.distinct_ids)
        assert bool(next(iter(answers.rows)).shadow) == bool(in_shadow)


def test_announced_names_of_any_length_and_number_end_no_host_and_take_little_memory() -> None:
    shim = Shim(java := Java())
    clients = NewClients(shim, Guard(shim), Clock())
    clients.answers_changed("u" * 2_000_000)
    clients.ask_again()
    tracemalloc.start()
    for number in range(20_000):  # before the host's next turn
        clients.answers_changed(f"user-{number}")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    clients.ask_again()
    everyone = encode(["ask_again", *EVERYONE])
    assert (java.calls[-1], kept < 100_000) == (("ask_again", everyone), True)


@given(st.lists(QUOTAS, max_size=4), COMBINE)
def test_the_first_answer_or_the_smallest_rate_gives_quota_and_scope(answers: list[Quota | None], combine: str) -> None:
    found = tried({f"s{n}": supplier(answer, ()) for n, answer in enumerate(answers)}, combine=combine)[0]
    known = [(f"s{n}", answer) for n, answer in enumerate(answers) if answer]
    if known:
        # The first of equal rates counts, and unlimited is the largest rate.
        name, quota = known[0] if combine == "first" else min(known, key=lambda one: one[1].rate or math.inf)
        code = quota.scope.kind.value
        assert found.answer == Answer(code, quota.rate, quota.scope.name, name)
    else:
        assert (found.answer.supplier, found.answer.rate) == ("", None)


def test_a_supplier_that_fails_leaves_the_client_as_it_is() -> None:
    found, _ = tried({"good": supplier(Quota(1.0)), "bad": Supplier(fails)}, combine="most-constraining")
    assert found.answer == Answer(NEWCOMER, None, "", "bad")


# ---- the principal's other client-ids ---------------------------------------------------------------------------


THREE = [supplier(None, {"a"}), supplier(Quota(1.0), {"b"}), supplier(Quota(2.0), {"c"})]
UNSURE, KNOWS = supplier(None), supplier(Quota(1.0), {"a"})


@pytest.mark.parametrize(
    ("suppliers", "combine", "distinct"),
    [
        (THREE, "first", {"a", "b"}),
        (THREE, "most-constraining", {"a", "b", "c"}),
        ([supplier(None, ()), supplier(Quota(1.0), [])], "first", set()),
        ([supplier(Quota(1.0), (name for name in "ab"))], "first", {"a", "b"}),  # a generator yields the names, too
        # If one of the suppliers that are asked doesn't know the client-ids, the answer is EACH.
        ([UNSURE, KNOWS], "first", EACH),
        ([KNOWS, UNSURE], "first", {"a"}),
        ([KNOWS, UNSURE], "most-constraining", EACH),
    ],
)
def test_all_suppliers_that_were_asked_decide_together(suppliers: list[Supplier], combine: str, distinct: Any) -> None:
    assert tried({f"s{n}": each for n, each in enumerate(suppliers)}, (), combine)[0].distinct == distinct


@pytest.mark.parametrize("wrong", ["abc", 5, [1], {"a": 1, 2: 3}])
def test_an_answer_of_another_type_is_counted_and_tells_nothing(wrong: Any) -> None:
    shim = FakeShim({})
    assert tried({"mine": supplier(Quota(1.0), wrong)}, shim=shim)[0].distinct == EACH
    assert shim.failed == ["mine"] * 2


def test_a_user_is_asked_about_until_distinct_client_ids_works(mine: Any, caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def distinct(self: Any, principal: str) -> frozenset[str]:
        nonlocal calls
        calls += 1
        if principal == "bob" or calls <= 3:
            fails()
        return frozenset()

    mine.Supplier.distinct_client_ids = distinct
    shim = FakeShim({"supplier": "mine"}, pace=1)
    for name in ("alice", "bob"):
        shim.arrive((name, "app"))
        shim.idle(120)
    serve(shim)
    assert (shim.distinct[ALICE], shim.distinct[Client("bob", "app")]) == (frozenset(), EACH)
    text = "plugin mine failed in distinct_client_ids()"
    assert [text in each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == [True, True]


# ---- measured quota types ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "types"),
    [
        ({}, set()),
        ({"factor.source": "fixed"}, {QuotaType.PRODUCE}),
        ({"factor.source": "fixed", "factor.quota.types": "PRODUCE,REQUEST"}, {QuotaType.PRODUCE, QuotaType.REQUEST}),
        ({"fallback.action": "PAUSE"}, {QuotaType.PRODUCE}),
        ({"factor.source": "load"}, {QuotaType.PRODUCE, QuotaType.FETCH}),
        ({"tasks": "publish-usage"}, {QuotaType.PRODUCE, QuotaType.FETCH}),
        ({"shadow": "supplier.static"}, set(QUOTA_TYPES)),  # unlimited clients are measured one by one
    ],
)
def test_types_are_measured_where_a_factor_or_a_plugin_needs_it(properties: dict[str, str], types: set[Any]) -> None:
    shim = serve(FakeShim(properties))
    assert shim.refused is None
    assert set(shim.measured) == types


# ---- suppliers in shadow -----------------------------------------------------------------------------------------

DISTINCT = st.none() | st.sampled_from([frozenset[str](), frozenset({"app"}), frozenset({"other"})])


@given(st.lists(st.tuples(QUOTAS, st.booleans(), DISTINCT), max_size=4), COMBINE)
def test_what_is_in_force_is_what_it_were_without_the_suppliers_in_shadow_and_beside_it_what_would_be(
    chain: list[tuple[Quota | None, bool, frozenset[str] | None]], combine: str
) -> None:
    all_of_them = {f"s{n}": supplier(quota, distinct) for n, (quota, _, distinct) in enumerate(chain)}
    in_shadow = frozenset(f"s{n}" for n, (_, shadowed, _) in enumerate(chain) if shadowed)
    without = {name: each for name, each in all_of_them.items() if name not in in_shadow}
    now = tried(all_of_them, in_shadow, combine)
    alone, enforced = tried(without, frozenset(), combine), tried(all_of_them, frozenset(), combine)
    for each, old, new in zip(now, alone, enforced, strict=True):
        is_tried = new.answer.supplier in in_shadow
        assert each.would == (new.answer if is_tried else None)
        # An unlimited client is measured in its would-be scope.
        scope = new.answer if is_tried and old.answer.rate is None else old.answer
        assert each.answer == old.answer._replace(code=scope.code, group=scope.group)
        # Suppliers in shadow cause no further questions: Java learns as much about the principal's other client-ids.
        assert (each.distinct == EACH) == (old.distinct == EACH)


def test_client_ids_that_may_differ_by_the_supplier_in_shadow_are_each_asked_about() -> None:
    def by_client(client: Client, _: object) -> Quota:
        return Quota(1.0 if client == ALICE else 2.0)

    chain = {"new": Supplier(by_client), "old": supplier(Quota(5e6), ())}
    found = tried(chain, frozenset({"new"}))
    assert [each.would and each.would.rate for each in found] == [1.0, 2.0]


@pytest.mark.parametrize(("number", "shadow"), [(2, ""), (2, "supplier.mine"), (MOST_APART + 2, "supplier.mine")])
def test_a_supplier_that_failed_is_asked_again_and_in_shadow_harms_nobody(mine: Any, number: int, shadow: str) -> None:
    broken = [True]
    mine.Supplier.quota = lambda *_: fails() if broken else Quota(1.0)
    shim = FakeShim({"supplier": "mine,static", "shadow": shadow, "static.produce": "5M"}, pace=1)
    clients = [(f"u{n}", "app") for n in range(number)]
    shim.arrive(*clients)
    shim.idle(20)
    shim.script.append(broken.clear)
    shim.idle(60)
    serve(shim)
    assert [bool(row.shadow) for row in shim.table.values()] == [bool(shadow)] * number
    assert set(shim.failed) == {"mine"}
    assert {shim.rate(*client) for client in clients} == {5e6 if shadow else 1.0}
