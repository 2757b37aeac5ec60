"""The pages of report and replay: one file of HTML each, in which no name becomes markup, and a curve's words."""

import re

import pytest

from quotahost.cli.lab.curves import Curve, Name, Question, Report
from quotahost.cli.lab.host import settings_of
from quotahost.cli.lab.pages import replay_page, report_page
from quotahost.cli.lab.play import Replay, play
from quotahost.cli.lab.replay import tables_of
from tests.fakes.plugin_context import settings
from tests.unit.cli.lab import runs

HOSTILE = "</title><script>alert('\"&{{ 7 * 7 }}')</script>$x_{ \x1b[31m\u202e\r\n\x9b31m\ud800"
TIME = 1795296600.0  # 2026-11-21 21:30


def page(replay: Replay, name: str = "server.properties") -> str:
    return replay_page(replay, name, tables_of(replay))


def report_of(curve: Curve) -> Report:
    since, until = curve.buckets[0].at, curve.newest.at + 3600
    return Report(Question("/history"), since, until, 3600.0, known=1, curves=(curve,))


def curve(consumed: int, rate: float | None, soft: int | None = 800, hard: int | None = 900) -> Curve:
    (bucket,) = runs.each_minute([consumed], soft, hard)
    return Curve(Name("c", "1", "/d"), (bucket._replace(at=TIME),), rate)


def test_each_factor_and_each_volume_has_a_figure_and_a_row_and_nothing_is_fetched() -> None:
    scene = runs.two_brokers("limits")
    new = settings(factor__source="snapshots", static__storage__soft="300M", static__storage__hard="450M")
    text = page(play(runs.recorded(scene).history, runs.plan(new, settings_of(scene.properties))))
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Factor of cluster c", "broker 1: /data", "broker 2: /data"]
    assert text.count("<svg role") == 3
    assert [each for each in ("What server.properties would have done", "estimated") if each not in text] == []
    assert re.search(r"521 MB → \d{3} MB of 1.00 GB", text)
    assert not re.search(r"<(script|link|img)|url\(http|@import", text)
    assert "#1f6feb" not in text.partition("</style>")[2], "colours are those of the page"


def test_the_figures_are_of_the_brokers_that_would_be_held_back_longest() -> None:
    used = dict.fromkeys(range(1, 30), 10) | {9: 990}
    readings = {Name("c", str(broker), "/d"): runs.each_minute([of] * 3) for broker, of in used.items()}
    own = settings(factor__source="local", static__storage__soft="800", static__storage__hard="900")
    shown = re.findall(r"<h2>(.*?)</h2>", page(play(runs.report(readings), runs.plan(own))))
    assert shown[0] == "Factor of broker 9"
    assert sum(each.startswith("Factor of ") for each in shown) == 20


def test_hostile_names_command_nothing_and_are_never_markup() -> None:
    name, buckets = Name(HOSTILE, HOSTILE, HOSTILE), runs.each_minute(range(3), 50, 90)
    report = report_of(Curve(name, tuple(buckets), 1 / 3600))
    replayed = play(runs.report({name: buckets}), runs.plan(settings(factor__source="local")))
    for text in (report_page(report), report.title(report.curves[0]), page(replayed, "<script>file</script>")):
        assert "alert(" in text
        assert "<script" not in text or text == report.title(report.curves[0])
        assert all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize(
    ("each", "when", "state"),
    [
        (curve(540, 0.1), "in 1 h (2026-11-21 22:30)", "below"), (curve(800, -0.1), "not at this rate", "below"),
        (curve(801, None), "not known", "soft"), (curve(900, None), "reached", "hard"),
        (curve(2000, 0.1), "reached", "hard"), (curve(540, 0.1, hard=None), "no limit", "below"),
    ],
)  # fmt: skip
def test_when_a_limit_is_reached_follows_from_the_fill_rate_and_the_state_is_the_policys(
    each: Curve, when: str, state: str
) -> None:
    assert (each.show_when(each.newest.hard), each.state) == (when, state)


@pytest.mark.parametrize("consumed", [0, 1, 5000])
def test_a_single_reading_can_be_drawn(consumed: int) -> None:
    assert report_page(report_of(curve(consumed, None, None, None))).count("<svg role") == 1
    one = {Name("c", "1", "/d"): runs.each_minute([consumed], capacity=0)}
    found = play(runs.report(one), runs.plan(settings(factor__source="snapshots")))
    assert page(found).count("<svg role") == 2
