"""Tests rules in shadow: which clients each rule would hold back by Kafka's rates, and the thread that counts them."""

import json
from typing import Any
from unittest.mock import MagicMock

import pytest

from harness.system.waiting import eventually
from quotahost.broker.host.messages import Answer, shadow_text
from quotahost.broker.host.shadow import Comparison, Key, Shadow, compare
from quotahost.model import QuotaType, ScopeKind
from tests.fakes import dump as raw
from tests.fakes.plugin_context import settings
from tests.fakes.shim import FakeShim

PRODUCE, FETCH, REQUEST = QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST
TRIED = "supplier.tried"
CLIENT, USER, CLIENT_ID, ALL, GROUP = (each.value for each in ScopeKind)


def holder(
    principal: str, client_id: str, tags: tuple[str, str] | None = None, *, type: QuotaType = PRODUCE,
    base: float | None = None, stand_in: float | None = None, rate: float | None = None, supplier: str = "static",
    shadow: str = "", whole: bool = False, newcomer: bool = False, marked: bool = False, passes: bool = False,
) -> list[Any]:  # fmt: skip
    """One client, or all clients of a principal with ``whole``, and the rate that Kafka measures for its tags."""
    user_tag, client_tag = tags or (principal, client_id)
    return [
        principal, client_id, whole, type.value, user_tag, client_tag, base, stand_in, rate, newcomer, supplier, shadow,
        marked, passes,
    ]  # fmt: skip


def dump(*holders: list[Any], **changes: Any) -> dict[str, Any]:
    """Java's answer to the question ``holders`` in a state with low floors; ``closed`` closes the fence."""
    closed = changes.pop("closed", False)
    fence = {"installed": closed, "closed": closed, "counts_only": closed}
    state = raw.state(fence=fence, floors={"PRODUCE": 10.0, "FETCH": 10.0}, **changes)
    return {"state": state, "holders": list(holders)}


def compared(answer: dict[str, Any]) -> Comparison:
    return compare(lambda what, *_: answer if what == "holders" else answer[what])


def would(code: int, rate: float | None) -> str:
    """The would-be quotas of the supplier "tried", the same for every type."""
    return shadow_text((Answer(code, rate, "g/h" if code == GROUP else "", "tried"),) * 4)


SHARED, SANITIZED = ("<broker>", ""), "CN%3Da%20b%2A%7E%2B%C3%BC-_.%3F"
MEASURED: dict[str, tuple[list[Any], tuple[float, ...], dict[Key, float | None]]] = {
    "the old supplier is in force and the new one is measured in its own scope": (
        [holder("alice", each, base=5_000, rate=rate, shadow=would(USER, 1_000))
         for each, rate in (("a", 700), ("b", 800))],
        (1, 0, 500), {(PRODUCE, ("alice", "")): 1_500},
    ),
    "a REQUEST quota counts no bytes": (
        [holder("alice", "a", type=REQUEST, rate=90, shadow=would(CLIENT, 50))],
        (1, 0, 0), {(REQUEST, ("alice", "a")): 90},
    ),
    # All client-ids of alice share a quota, and each would have a quota of its own.
    **{f"a part of a shared quota, {name}": (
        [holder("alice", "a", tags=("alice", ""), whole=True, base=5_000, rate=700, shadow=would(code, 1))],
        (0, 1, 0), {(PRODUCE, tags): None},
    ) for name, code, tags in (("by client", CLIENT, ("alice", "")), ("by client-id", CLIENT_ID, ("", "")))},
    # All clients of the broker share a quota; bob would have one of his own, and carol none.
    "one of several clients that share a quota": (
        [holder("bob", "a", tags=SHARED, whole=True, base=5_000, rate=700, shadow=would(USER, 1)),
         holder("carol", "a", tags=SHARED, whole=True, base=5_000, rate=700)],
        (0, 1, 0), {(PRODUCE, ("bob", "")): None},
    ),
    "a scope with a part that can't be measured": (
        [holder("alice", "a", rate=700, shadow=would(USER, 1)),
         holder("alice", "b", tags=("", "b"), rate=700, shadow=would(USER, 1)),
         holder("bob", "b", tags=("", "b"), rate=700)],
        (0, 1, 0), {(PRODUCE, ("alice", "")): None},
    ),
    "clients of a group would share their separate quotas": (
        [holder(user, "a", tags=(user, ""), whole=True, base=5_000, rate=600, shadow=would(GROUP, 1_000))
         for user in ("alice", "bob")],
        (1, 0, 200), {(PRODUCE, ("<group g%2Fh>", "")): 1_200},
    ),
    "a shared quota is measured once": (
        [holder(user, "a", tags=SHARED, rate=600, shadow=would(ALL, 500)) for user in ("alice", "bob")],
        (1, 0, 100), {(PRODUCE, SHARED): 600},
    ),
    # SanitizedTest compares this encoding with Kafka's own Sanitizer.
    "names that Kafka encodes in its tags are found again": (
        [holder("CN=a b*~+ü-_.\ud800", "a b", tags=(SANITIZED, "a b"), rate=900, shadow=would(CLIENT, 500))],
        (1, 0, 400), {(PRODUCE, (SANITIZED, "a b")): 900},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "counts", "rates"), MEASURED.values(), ids=MEASURED)
def test_a_supplier_in_shadow_is_compared_with_what_kafka_measures(
    rows: list[Any], counts: tuple[float, ...], rates: dict[Key, float | None]
) -> None:
    for some in (rows, rows[::-1]):
        found = compared(dump(*some, shadow=[TRIED]))
        count = found.counts[TRIED]
        assert (count.over, count.unmeasured, count.beyond) == counts
        assert found.rates == rates
        assert set(found.held.values()) == ({TRIED} if count.over else set())


PAUSED = {"factor": 0.0, "limit_factor": 0.0}


@pytest.mark.parametrize(
    ("rate", "changes", "beyond"),
    [
        (1_000, {}, 400),
        (1_000, {"limit_factor": 0.8}, 100),  # the tap is still on its way
        (1_000, {"affected_topics": 3}, 0),  # the factor is for other clients
        (1_000, {"factor_types": ["FETCH"]}, 0),
        (1_000, {"shadow": [TRIED, "factor"], "limit_factor": 1.0}, 0),  # each rule as if it alone were in force
        # A factor leaves quotas below the floor as they are, and lowers others to the floor at most.
        *((rate, PAUSED, beyond) for rate, beyond in ((1_000, 890), (5, 895), (None, 890))),
        (None, {}, 0),  # the rate that the factor would multiply is unknown
    ],
)
def test_a_factor_lowers_what_would_be_given(rate: float | None, changes: dict[str, Any], beyond: float) -> None:
    row = holder("alice", "a", rate=900, shadow=would(CLIENT, rate))
    found = compared(dump(row, **({"shadow": [TRIED], "factor": 0.5, "limit_factor": 0.5} | changes)))
    assert sum(count.beyond for rule, count in found.counts.items() if rule == TRIED) == pytest.approx(beyond)


TOGETHER: dict[str, Any] = {"tags": ("<broker>", ""), "base": 1_000, "rate": 700}
QUOTA: dict[str, Any] = {"base": 1_000, "rate": 700}


@pytest.mark.parametrize(
    ("rows", "changes", "over", "beyond"),
    [
        # Only bytes within the quota count for the factor, and none if the factor is 1.
        ([holder("alice", "a", base=1_000, rate=1_100), holder("bob", "b", base=1_000, rate=400)], {}, 1, 500),
        ([holder("alice", "a", base=1_000, rate=1_100)], {"factor": 1.0}, 0, 0),
        # The factor multiplies an unlimited client's stand-in, or else its rate now; a rate below the floor stays.
        ([holder("alice", "a", rate=900, stand_in=1_000), holder("bob", "a", rate=900), holder("carol", "a", rate=5)],
         {}, 2, 400 + 450),
        # If the fence would hold a PAUSE, all bytes are beyond the limit, except those of clients that pass.
        ([holder("admin", "a", **QUOTA, passes=True), holder("admin", "b", **TOGETHER, passes=True),
          holder("alice", "b", **TOGETHER)], {"factor": 0.0, "closed": True}, 1, 700),
        # If there is no fence, a PAUSE lets the floor through. A PAUSE of some topics turns back requests, not clients.
        ([holder("alice", "a", **QUOTA)], {"factor": 0.0}, 1, 690),
        ([holder("alice", "a", **QUOTA, marked=True)], {"factor": 0.0, "closed": True, "affected_topics": 1}, 1, 690),
        # A factor for some topics slows marked clients; a scope with only some marked clients stays as it is.
        ([holder("alice", "a", **QUOTA, marked=True), holder("bob", "a", **QUOTA),
          holder("carol", "a", **TOGETHER, marked=True), holder("dave", "a", **TOGETHER)],
         {"affected_topics": 1}, 1, 200),
    ],
)  # fmt: skip
def test_the_factor_in_shadow_is_counted(rows: list[Any], changes: dict[str, Any], over: int, beyond: float) -> None:
    found = compared(dump(*rows, shadow=["factor"], **({"factor": 0.5} | changes)))
    count = found.counts.get("factor")
    assert ((count.over, count.beyond) if count else (0, 0)) == (over, beyond)


SLOWED = holder("alice", "a", base=1_000, rate=900)
READS = holder("alice", "a", type=FETCH, base=5_000, rate=900, shadow=would(CLIENT, 1_000))


@pytest.mark.parametrize(
    ("row", "changes"),
    [
        (SLOWED, {"shadow": [TRIED]}),  # a factor in force isn't in shadow
        (SLOWED, {"shadow": []}),
        (READS, {"shadow": [TRIED, "factor"], "factor_types": ["FETCH"]}),  # the factor in shadow lowers nothing
        (READS, {"shadow": []}),
        (holder("alice", "a", type=FETCH, base=1_000, rate=900), {"shadow": ["factor"]}),  # the factor is for PRODUCE
    ],
)
def test_what_is_not_in_shadow_is_not_counted(row: list[Any], changes: dict[str, Any]) -> None:
    assert compared(dump(row, factor=0.5, **changes)).counts == {}


def test_with_mode_shadow_the_quotas_of_all_suppliers_are_counted_and_the_factors_part_beside_them() -> None:
    rows = [
        holder("alice", "a", base=1_000, rate=1_600, supplier="static\toverrides=2000.0"),
        holder("new", "a", tags=("<newcomers>", ""), base=100, rate=1_600, supplier="static", newcomer=True),
    ]
    found = compared(dump(*rows, shadow=["factor", "topics"], enforced=False, factor=0.5))
    assert (found.counts["supplier.static"].over, found.counts["supplier.static"].beyond) == (1, 600)
    assert (found.counts["factor"].over, found.counts["factor"].beyond) == (2, 500 + 50)


# ---- the thread that looks ----


class Watched:
    """A comparison that the test runs in place of its thread. Alice's app exceeds its would-be quota by a half."""

    def __init__(self, rules: str = TRIED, **changes: Any) -> None:
        self.row = holder("alice", "a", rate=1_500, shadow=would(CLIENT, 1_000))
        self.java = FakeShim(answers=dump(self.row, **{"shadow": [TRIED]} | changes))
        self.java.answers["holders"] = {"holders": [self.row]}
        self.shadow = Shadow(self.java, self.java.clock)
        self.shadow._thread = MagicMock()
        self.configure(rules)

    def configure(self, rules: str = "") -> None:
        self.shadow.configure(settings(supplier="tried,static", shadow=rules))

    def looks(self, *after: float) -> None:
        """Look after each of these pauses in seconds."""
        for pause in after:
            self.java.clock.now += pause
            self.shadow._work()

    def hears(self) -> list[str]:
        """The texts that tell Java which clients would be held back."""
        return [text for (text,) in self.java.arguments("held")]

    def shows(self, rule: str = TRIED) -> list[float | None]:
        """The metrics Over, Unmeasured, Seconds and Bytes of a rule."""
        names = ("Over", "Unmeasured", "Seconds", "Bytes")
        return [self.java.shown.get(("Shadow", rule, name)) for name in names]


def test_seconds_and_bytes_beyond_the_limit_add_up_from_look_to_look() -> None:
    it = Watched()
    it.looks(5)
    assert it.shows() == [1, 0, 0, 0]  # the first look doesn't know since when
    it.looks(1, 2)
    assert it.shows() == [1, 0, 3, 1_500]
    it.row[8] = 900.0
    it.looks(1)
    assert it.shows() == [0, 0, 3, 1_500]
    assert list(map(json.loads, it.hears())) == [{"PRODUCE": [["alice", "a", TRIED]]}, {}], "only changes go to Java"
    it.row[8] = 1_500.0
    it.looks(1)
    it.configure()
    it.looks(1)
    assert (it.hears()[-1], it.shows()[:2]) == ("{}", [0, 0])
    it.configure(TRIED)
    it.looks(3600, 1)
    assert it.shows() == [1, 0, 5, 2_500], "the time without a rule in shadow doesn't count"


def test_a_host_takes_back_what_one_before_it_has_shown_of_rules_that_are_in_shadow_no_more() -> None:
    """An upgrade of Python and a change of ``shadow`` may be one command."""
    before = Watched()
    before.looks(5, 1)
    before.java.gauge("Shadow", "topic.t", "Over", 3.0)
    after = Shadow(before.java, before.java.clock)
    after.configure(settings(supplier="tried,static"))
    eventually(lambda: before.hears()[-1] == "{}")
    after.close()
    assert (before.shows(), before.shows("topic.t")[0]) == ([0, 0, 1, 500], 3)


def test_a_rule_is_shown_from_its_first_look_on_and_a_factor_of_one_asks_for_nobody() -> None:
    it = Watched(f"factor,topics,topic.t,{TRIED}", shadow=["factor"])
    it.looks(1, 1)
    assert it.shows("factor") == it.shows() == [0, 0, 0, 0]
    assert {name for _, name, _ in it.java.shown} == {"factor", TRIED}, "Java itself shows the rules of topics"
    assert "holders" not in {words[0] for words in it.java.questions}
    it.java.answers["state"]["factor"] = 0.5
    it.looks(1)
    assert [words for words in it.java.questions if words[0] == "holders"] == [("holders", "PRODUCE")]


def test_a_look_that_fails_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    it = Watched()
    works, it.java.answers["state"] = it.java.answers["state"], ConnectionError("the broker's heap is full")
    it.looks(1, 1)
    assert caplog.text.count("can't be computed now") == 1
    it.java.answers["state"] = works
    it.looks(1)
    assert it.shows()[0] == 1
