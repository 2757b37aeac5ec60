"""The thread that looks whom rules in shadow would hold back, and what it shows and counts."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.broker.host.messages import Answer, shadow_text
from quotahost.broker.host.shadow import LONGEST, PAUSE_PER_LOOK, TOLD, Key, Shadow, _told
from tests.fakes.holders import PRODUCE, holder, state
from tests.fakes.plugin_context import settings
from tests.fakes.shim import FakeShim

TRIED = "supplier.static"


@dataclass
class Java(FakeShim):
    """What the comparison asks of Java, whose clock moves on with each question."""

    rows: list[list[Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    now: float = 1000.0
    takes: float = 0.0
    problem: Exception | None = None

    def ask(self, *words: str) -> Any:
        self.questions.append(words)
        if self.problem:
            raise self.problem
        if words[0] == "gauges":
            return [[*key, value] for key, value in self.shown.items()]
        if words[0] == "state":
            return state(**self.state)
        self.now += self.takes
        return {"state": state(**self.state), "holders": [row for row in self.rows if row[3] == words[1]]}

    @property
    def hears(self) -> list[str]:
        """The texts of who would be held back."""
        return [text for (text,) in self.arguments("held")]

    def clock(self) -> float:
        return self.now

    def shows(self, rule: str) -> list[float | None]:
        """Over, Unmeasured, Seconds and Bytes of a rule."""
        names = ("Over", "Unmeasured", "Seconds", "Bytes")
        return [self.shown.get(("Shadow", rule, name)) for name in names]


def tried(**more: Any) -> Java:
    """Alice's app goes beyond what the supplier in shadow would give it by a half."""
    row = holder("alice", "a", rate=1_500, shadow=shadow_text((Answer(0, 1_000, "", "static"),) * 4))
    return Java(rows=[row], state={"shadow": [TRIED]}, **more)


def watch(java: Java, **changes: str) -> Shadow:
    """Without its thread: the test looks itself."""
    shadow = Shadow(java, java.clock, lambda *_: threading.current_thread())
    shadow.configure(settings(**changes))
    return shadow


def looks(shadow: Shadow, java: Java, *after: float) -> None:
    """A look after each of these pauses in seconds."""
    for pause in after:
        java.now += pause
        shadow._work()


def test_seconds_and_bytes_beyond_the_limit_add_up_from_look_to_look() -> None:
    java = tried()
    shadow = watch(java, shadow=TRIED)
    looks(shadow, java, 5)
    assert java.shows(TRIED) == [1, 0, 0, 0]  # nobody knows since when
    looks(shadow, java, 1, 2)
    assert java.shows(TRIED) == [1, 0, 3, 1_500]
    java.rows[0][8] = 900.0
    looks(shadow, java, 1)
    assert java.shows(TRIED) == [0, 0, 3, 1_500]
    assert list(map(json.loads, java.hears)) == [{"PRODUCE": [["alice", "a", TRIED]]}, {}], "Java hears of changes"
    java.rows[0][8] = 1_500.0
    looks(shadow, java, 1)
    shadow.configure(settings())
    looks(shadow, java, 1)
    assert (java.hears[-1], java.shows(TRIED)[:2]) == ("{}", [0, 0])
    shadow.configure(settings(shadow=TRIED))
    looks(shadow, java, 3600, 1)
    assert java.shows(TRIED) == [1, 0, 5, 2_500], "the time without a rule in shadow doesn't count"


def test_a_rule_is_shown_from_its_first_look_on() -> None:
    java = Java(state={"shadow": ["factor"]})
    looks(watch(java, shadow=f"factor,topics,topic.t,{TRIED}"), java, 1)
    assert java.shows("factor") == java.shows(TRIED) == [0, 0, 0, 0]
    assert {name for _, name, _ in java.shown} == {"factor", TRIED}, "topics are Java's"


def test_a_pause_that_was_not_planned_counts_nothing() -> None:
    java = tried()
    shadow = watch(java, shadow=TRIED)
    looks(shadow, java, 1, LONGEST + 1)
    assert java.shows(TRIED) == [1, 0, 0, 0]
    java.takes = 2.0  # of each of three types
    looks(shadow, java, 1)
    assert shadow._pause == 6 * PAUSE_PER_LOOK
    looks(shadow, java, shadow._pause)
    assert java.shows(TRIED)[2] == 1 + 6 * (PAUSE_PER_LOOK + 1)


def test_a_factor_of_one_in_shadow_asks_for_nobody() -> None:
    java = Java(state={"shadow": ["factor"]})
    looks(watch(java, shadow="factor"), java, 1, 1)
    assert {words[0] for words in java.questions} == {"gauges", "state"}
    java.state["factor"] = 0.5
    looks(watch(java, shadow="factor"), java, 1)
    assert [words for words in java.questions if words[0] == "holders"] == [("holders", "PRODUCE")]


def test_who_has_no_quota_is_compared_with_what_it_used_when_the_factor_fell() -> None:
    java = Java(
        rows=[holder("alice", "a", rate=1_000), holder("bob", "a", rate=5)], state={"shadow": ["factor"], "factor": 0.5}
    )
    shadow = watch(java, shadow="factor", newcomers__produce="8000")
    looks(shadow, java, 1)
    assert java.shows("factor")[0] == 1  # bob used too little to be measured by: he has what newcomers have
    java.rows[0][8], java.rows[1][8] = 400.0, 4_100.0
    looks(shadow, java, 1)
    assert java.shows("factor") == [1, 0, 1, 100]
    java.state["factor"] = 1.0
    looks(shadow, java, 1)
    java.state["factor"] = 0.5
    looks(shadow, java, 1)
    assert java.shows("factor")[0] == 2  # the factor fell anew


def test_of_many_java_is_told_those_furthest_beyond() -> None:
    held: dict[Key, tuple[str, float]] = {(PRODUCE, (f"u{n}", "")): ("factor", n) for n in range(TOLD + 100)}
    told = {user for user, _, _ in json.loads(_told(held))["PRODUCE"]}
    assert told == {f"u{n}" for n in range(100, TOLD + 100)}


def test_a_host_that_follows_another_goes_on_with_its_numbers_and_takes_the_old_ones_back() -> None:
    java = Java(state={"shadow": []}, second_life=True)
    for attribute, value in (("Over", 3.0), ("Unmeasured", 2.0), ("Seconds", 7.0), ("Bytes", 8.0)):
        java.gauge("Shadow", TRIED, attribute, value)
        java.gauge("Shadow", "topic.t", attribute, value)
    shadow = Shadow(java, java.clock)
    shadow.configure(settings())
    eventually(lambda: java.hears == ["{}"])
    shadow.close()
    assert java.shows(TRIED) == [0, 0, 7, 8]
    assert java.shows("topic.t") == [3, 2, 7, 8]


def test_the_thread_looks_as_soon_as_a_rule_is_in_shadow_and_ends_with_the_host() -> None:
    java = tried()
    shadow = Shadow(java)
    shadow.configure(settings())
    assert shadow._thread is None
    shadow.configure(settings(shadow=TRIED))
    eventually(lambda: java.hears == [json.dumps({"PRODUCE": [["alice", "a", TRIED]]}, separators=(",", ":"))])
    thread = shadow._thread
    assert thread
    shadow.close()
    assert thread.close(1)


@pytest.mark.parametrize("problem", [ConnectionError("no JMX"), KeyError("state")])
def test_a_look_that_fails_is_logged_once(problem: Exception, caplog: pytest.LogCaptureFixture) -> None:
    java = tried(problem=problem)
    shadow = watch(java, shadow=TRIED)
    looks(shadow, java, 1, 1)
    assert caplog.text.count("can't be compared now") == 1
    java.problem = None
    looks(shadow, java, 1)
    assert java.shows(TRIED)[0] == 1
