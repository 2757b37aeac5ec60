"""What goes through the bridge, as JPype would take it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from quotahost.broker.host.bridge import JavaShim


class Questions:
    """Answers as org.quotahost.host.Questions does."""

    def answer(self, words: list[str]) -> str:
        return json.dumps({"error": "no"} if words == ["fail"] else words)


def test_a_question_is_answered_by_values_or_an_error() -> None:
    shim = JavaShim.__new__(JavaShim)
    shim._questions, shim._strings = Questions(), list
    assert shim.ask("client", "alice", "\ud800") == ["client", "alice", "\\ud800"]
    with pytest.raises(ConnectionError, match="no"):
        shim.ask("fail")


class Java:
    """Stands for every Java object: takes any call, and texts only as JPype does."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return self.call

    def call(self, *arguments: object) -> Any:
        for each in arguments:
            if isinstance(each, str):
                each.encode()  # JPype: UnicodeEncodeError for half a surrogate pair
                self.texts.append(each)
        return self

    def bytes(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    "hand_over",
    [
        lambda shim: shim.set_factor(0.5, "/data/\udcff is full"),
        lambda shim: shim.gauge("Volume", "/data/\udcff is full", "Consumed", 1.0),
        lambda shim: shim.count("Volume", "/data/\udcff is full", "Failures", 1),
        lambda shim: shim.forget("Volume", "/data/\udcff is full"),
        lambda shim: shim.refuse("/data/\udcff is full"),
        lambda shim: shim.verdict("1", "/data/\udcff is full"),
    ],
)
def test_a_text_of_a_plugin_that_is_no_unicode_reaches_java_escaped(hand_over: Callable[[JavaShim], None]) -> None:
    shim, java = JavaShim.__new__(JavaShim), Java()
    shim._host_thread = shim._host_questions = shim._table = shim._gauges = shim._creation = java
    hand_over(shim)
    assert r"/data/\udcff is full" in java.texts
