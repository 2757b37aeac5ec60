"""What an operator hears who asks how long topics are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.broker.host.broker_status import answer_question
from quotahost.broker.host.messages import ConfigRow
from tests.fakes.shim import FakeShim


@dataclass
class Topics(FakeShim):
    problem: str = ""
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    def configs(self, type: str, names: Sequence[str]) -> list[ConfigRow]:
        self.asked.append((type, list(names)))
        if self.problem:
            raise ConnectionError(self.problem)
        properties = {"retention.ms": "1000", "cleanup.policy": "delete", "segment.bytes": "5"}
        return [
            ConfigRow(topic, name, "DEFAULT_CONFIG", value) for topic in names for name, value in properties.items()
        ]


def ask(shim: Topics, *words: str) -> Any:
    answer_question(shim, "5", words)
    eventually(lambda: "5" in shim.answered)
    return json.loads(shim.answered["5"])


def test_of_each_topic_that_exists_the_properties_that_decide_what_is_deleted() -> None:
    shim = Topics()
    assert ask(shim, "retention", "a,b") == [
        [topic, name, value]
        for topic in "ab"
        for name, value in (("retention.ms", "1000"), ("cleanup.policy", "delete"))
    ]
    assert shim.asked == [("TOPIC", ["a", "b"])]


def test_of_no_topics_nobody_is_asked() -> None:
    shim = Topics()
    assert ask(shim, "retention", "") == []
    assert shim.asked == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("retention", "a"), "TimeoutException: no answer"), (("what", "else"), "unknown question: what else")],
)
def test_a_question_without_an_answer_has_an_error(words: tuple[str, ...], problem: str) -> None:
    assert ask(Topics(problem=problem), *words) == {"error": problem}
