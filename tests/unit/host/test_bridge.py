"""Java's numbers on their way to the metrics endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quotahost.host.bridge import JavaShim
from quotahost.host.messages import Gauge


class JavaHost:
    """Shows three gauges, one fewer after each call: a plugin or a volume may go at any time."""

    def __init__(self) -> None:
        self.shown = [("Volume", name, "Capacity", capacity) for name, capacity in (("/a", 1e10), ("/b", 2.5))]
        self.shown.insert(0, ("Plugin", "mine", "Errors", 3.0))

    def gaugeReadings(self) -> list[str]:
        rows, self.shown = self.shown, self.shown[1:]
        return [str(field) for row in rows for field in row]


def test_every_number_stands_beside_its_own_name_while_gauges_come_and_go() -> None:
    shim = JavaShim.__new__(JavaShim)
    shim._host = JavaHost()
    assert shim.gauges() == [
        Gauge("Plugin", "mine", "Errors", 3.0), Gauge("Volume", "/a", "Capacity", 1e10),
        Gauge("Volume", "/b", "Capacity", 2.5),
    ]  # fmt: skip


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
    shim._host = shim._table = shim._gauges = java
    hand_over(shim)
    assert r"/data/\udcff is full" in java.texts
