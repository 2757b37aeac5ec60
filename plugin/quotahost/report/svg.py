"""Curves as SVG for the page: figures in its colours, and the numbers of the sparklines in its table."""

from __future__ import annotations

import re
from io import StringIO
from typing import Final, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

from quotahost.report.figure import COLOURS
from quotahost.report.values import Curve

_WIDTH, _HEIGHT = 130, 30  # pixels of a sparkline
_POINTS: Final = _WIDTH // 2  # one for each two pixels
_MARGIN: Final = 2  # pixels, so that the mark at the end isn't cut off


def as_svg(figure: Figure, salt: str, label: str) -> Markup:
    """An inline <svg>, whose colours are the page's variables ``--line``, ``--soft`` and so on.

    Args:
        figure: made by ``quotahost.report.figure``.
        salt: keeps its ids apart from those of other figures in the page.
        label: what a screen reader says, as plain text.
    """
    text = StringIO()
    # Text stays text: smaller, and the page's own font.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue()
    # Without the XML prolog: within HTML an <svg> has none.
    drawn = re.sub(r"\s*<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    drawn = re.sub(r'<g id="[^"]*"', "<g", drawn)  # ids of groups are the same in every figure, and unused
    drawn = re.sub(r"font-family: [^;\"]*;?", "", drawn)
    for name, colour in COLOURS.items():
        drawn = drawn.replace(colour, f"var(--{name})")
    # format escapes the label: a volume's name may come from anybody who writes to the topic.
    labelled = Markup('<svg role="img" aria-label="{}"').format(label)
    return labelled + Markup(drawn.removeprefix("<svg"))


class Sparkline(NamedTuple):
    """A curve at the size of a word, in pixels from the top left; ``hard`` is the height of the hard limit."""

    points: list[tuple[float, float]]
    hard: float | None
    width: int = _WIDTH
    height: int = _HEIGHT


def sparkline(curve: Curve) -> Sparkline:
    """The whole curve, thinned out to one point for each two pixels."""
    # The step is rounded up, so that there are no more than _POINTS.
    buckets = curve.buckets[:: -(-len(curve.buckets) // _POINTS)]
    if buckets[-1] is not curve.newest:
        buckets = (*buckets, curve.newest)
    # A curve may be one bucket only, whose span is 0.
    since, span = buckets[0].at, max(1e-9, curve.newest.at - buckets[0].at)
    top = max(1, *(max(bucket.capacity, bucket.last) for bucket in buckets))
    # Not from empty, so that its shape is seen; with some room below, so that noise doesn't look like change.
    bottom = max(0.0, min(bucket.last for bucket in buckets) - 0.2 * top)

    def height(level: float) -> float:
        return _MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - (level - bottom) / (top - bottom))

    across = (_WIDTH - 2 * _MARGIN) / span
    points = [(_MARGIN + (bucket.at - since) * across, height(bucket.last)) for bucket in buckets]
    hard = curve.newest.hard
    # A limit below the part that is drawn lies at its lower edge.
    return Sparkline(points, None if hard is None else height(max(hard, bottom)))
