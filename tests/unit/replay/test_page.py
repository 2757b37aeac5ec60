"""The page shows then and with these settings, and no name in it is read as HTML."""

from __future__ import annotations

import re
from functools import lru_cache

from quotahost.replay.page import page
from quotahost.replay.play import play
from quotahost.replay.values import Replay
from quotahost.report.values import Bucket, Name
from quotahost.simulation.world import settings_of
from tests.unit.replay import runs


@lru_cache
def lower() -> Replay:
    scene = runs.two_brokers("limits")
    new = runs.settings(factor__source="snapshots", static__storage__soft="300M", static__storage__hard="450M")
    return play(runs.recorded(scene).history, runs.plan(new, settings_of(scene.properties)))


def test_each_factor_and_each_volume_has_a_figure_and_a_row() -> None:
    text = page(lower(), "server.properties")
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Factor of cluster c", "broker 1: /data", "broker 2: /data"]
    assert text.count("<svg role") == 3
    assert "What server.properties would have done" in text
    assert "estimated" in text
    assert re.search(r"521 MB → \d{3} MB of 1.00 GB", text)


def test_it_fetches_nothing_and_colours_are_those_of_the_page() -> None:
    text = page(lower(), "server.properties")
    assert not re.search(r"<(script|link|img)|url\(http|@import", text)
    assert "#1f6feb" not in text.partition("</style>")[2]


def test_names_stay_text() -> None:
    hostile = Name("c", "1", "/<script>alert(1)</script>$x_{")
    buckets = [Bucket(60.0 * i, 10, 10, 10, 1000, 800, 900) for i in range(3)]
    found = play(runs.report({hostile: buckets}), runs.plan(runs.settings(factor__source="local")))
    assert "<script" not in page(found, "<b>file</b>")


def test_a_single_reading_can_be_drawn() -> None:
    one = {Name("c", "1", "/d"): [Bucket(60.0, 0, 0, 0, 0, None, None)]}
    found = play(runs.report(one), runs.plan(runs.settings(factor__source="snapshots")))
    assert page(found, "server.properties").count("<svg role") == 2
