"""The report's page: one file of HTML in which no name becomes markup."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser

from quotahost.report.page import page
from quotahost.report.values import Bucket, Curve, Name, Question, Report, in_utc

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
    shown = _Shown(page(report(Name(HOSTILE, HOSTILE, HOSTILE))))
    assert "script" not in shown.tags
    assert shown.text.count(f"broker {HOSTILE}: {HOSTILE}") == 2  # in the table and above the figure
    assert shown.text.count(f"Volumes of {HOSTILE}") == 2  # the title and the heading
    assert shown.labels == [f"broker {HOSTILE}: {HOSTILE}"]


def test_each_curve_is_reported_when_it_is_drawn() -> None:
    drawn: list[int] = []
    page(report(Name("c", "1", "/d")), drawn.append)
    assert drawn == [1]
