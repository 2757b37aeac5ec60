"""The pages of report and replay: one file of HTML each, in which no name becomes markup, and a curve's words."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from html.parser import HTMLParser

import pytest

from quotahost.cli.lab.curves import Bucket, Curve, Name, Question, Report, in_utc
from quotahost.cli.lab.host import settings_of
from quotahost.cli.lab.pages import replay_page, report_page
from quotahost.cli.lab.play import Replay, play
from quotahost.cli.lab.replay import tables_of
from tests.unit.cli.lab import runs

HOSTILE = "</title><script>alert('\"&{{ 7 * 7 }}')</script>"
NOON = 1795262400.0


class _Shown(HTMLParser):
    """The page's text, the names of its tags, and the labels of its figures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.tags, self.labels = "", set[str](), list[str | None]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.labels += [value for name, value in attrs if name == "aria-label"]

    def handle_data(self, data: str) -> None:
        self.text += data


def report(name: Name) -> Report:
    buckets = tuple(Bucket(NOON + hour * 3600, hour, hour, hour, 100, 50, 90) for hour in range(3))
    curve = Curve(name, buckets, 1 / 3600)
    return Report(Question("/history"), in_utc(NOON), in_utc(NOON + 7200), timedelta(hours=1), known=1, curves=(curve,))


def test_hostile_names_are_shown_and_never_markup() -> None:
    shown = _Shown(report_page(report(Name(HOSTILE, HOSTILE, HOSTILE))))
    assert "script" not in shown.tags
    assert shown.text.count(f"broker {HOSTILE}: {HOSTILE}") == 2  # in the table and above the figure
    assert shown.text.count(f"Volumes of {HOSTILE}") == 2  # the title and the heading
    assert shown.labels == [f"broker {HOSTILE}: {HOSTILE}"]


@lru_cache
def lower() -> Replay:
    scene = runs.two_brokers("limits")
    new = runs.settings(factor__source="snapshots", static__storage__soft="300M", static__storage__hard="450M")
    return play(runs.recorded(scene).history, runs.plan(new, settings_of(scene.properties)))


def page(replay: Replay, name: str = "server.properties") -> str:
    return replay_page(replay, name, tables_of(replay))


def test_each_factor_and_each_volume_has_a_figure_and_a_row() -> None:
    text = page(lower())
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Factor of cluster c", "broker 1: /data", "broker 2: /data"]
    assert text.count("<svg role") == 3
    assert "What server.properties would have done" in text
    assert "estimated" in text
    assert re.search(r"521 MB → \d{3} MB of 1.00 GB", text)


def test_it_fetches_nothing_and_colours_are_those_of_the_page() -> None:
    text = page(lower())
    assert not re.search(r"<(script|link|img)|url\(http|@import", text)
    assert "#1f6feb" not in text.partition("</style>")[2]


def test_names_stay_text() -> None:
    hostile = Name("c", "1", "/<script>alert(1)</script>$x_{")
    buckets = [Bucket(60.0 * i, 10, 10, 10, 1000, 800, 900) for i in range(3)]
    found = play(runs.report({hostile: buckets}), runs.plan(runs.settings(factor__source="local")))
    assert "<script" not in page(found, "<b>file</b>")


def curve(consumed: int, rate: float | None, soft: int | None = 800, hard: int | None = 900) -> Curve:
    bucket = Bucket(1795296600.0, consumed, consumed, consumed, 1000, soft, hard)  # 2026-11-21 21:30
    return Curve(Name("c", "1", "/d"), (bucket,), rate)


def to_hard(curve: Curve) -> str:
    return curve.show_when(curve.newest.hard)


def test_when_a_limit_is_reached_follows_from_the_fill_rate() -> None:
    assert to_hard(curve(540, 0.1)) == "in 1 h (2026-11-21 22:30)"
    assert to_hard(curve(540, -0.1)) == "not at this rate"
    assert to_hard(curve(540, None)) == "not known"
    assert to_hard(curve(900, None)) == "reached"
    assert to_hard(curve(540, 0.1, hard=None)) == "no limit"


@pytest.mark.parametrize(("consumed", "expected"), [(800, "below"), (801, "soft"), (900, "hard"), (2000, "hard")])
def test_state_is_that_of_the_policy_at_the_limits(consumed: int, expected: str) -> None:
    assert curve(consumed, 0.0).state == expected


@pytest.mark.parametrize("consumed", [0, 1, 5000])
def test_a_single_reading_can_be_drawn(consumed: int) -> None:
    alone = replace(report(Name("c", "1", "/d")), curves=(curve(consumed, None, None, None),))
    assert report_page(alone).count("<svg role") == 1
    one = {Name("c", "1", "/d"): [Bucket(60.0, consumed, consumed, consumed, 0, None, None)]}
    found = play(runs.report(one), runs.plan(runs.settings(factor__source="snapshots")))
    assert page(found).count("<svg role") == 2
