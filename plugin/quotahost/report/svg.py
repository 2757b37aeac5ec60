"""Curves as SVG for the page: themed by its variables, and sparklines for its table."""

from __future__ import annotations

import re
from io import StringIO
from typing import Final

import matplotlib
from matplotlib.figure import Figure

from quotahost.report.figure import COLOURS
from quotahost.report.values import Curve

_WIDTH, _HEIGHT = 130, 30
_POINTS: Final = 65  # of a sparkline: one for each two pixels


def as_svg(figure: Figure, salt: str, label: str) -> str:
    """An inline <svg>, whose colours are the page's variables ``--line``, ``--soft`` and so on.

    Args:
        figure: made by ``quotahost.report.figure``.
        salt: keeps its ids apart from those of other figures in the page.
        label: what a screen reader says; already escaped.
    """
    text = StringIO()
    # Text stays text: smaller, and the page's own font.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue()
    drawn = re.sub(r"\s*<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    drawn = re.sub(r'<g id="[^"]*"', "<g", drawn)  # ids of groups are the same in every figure, and unused
    drawn = re.sub(r"font-family: [^;\"]*;?", "", drawn)
    for name, colour in COLOURS.items():
        drawn = drawn.replace(colour, f"var(--{name})")
    return drawn.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def sparkline(curve: Curve) -> str:
    """The whole curve at the size of a word; the hard limit is a line across."""
    buckets = curve.buckets[:: -(-len(curve.buckets) // _POINTS)]
    if buckets[-1] is not curve.newest:
        buckets = (*buckets, curve.newest)
    since, span = buckets[0].at, max(1e-9, curve.newest.at - buckets[0].at)
    top = max(1, *(max(bucket.capacity, bucket.last) for bucket in buckets))
    # Not from empty, so that its shape is seen; with some room below, so that noise doesn't look like change.
    bottom = max(0.0, min(bucket.last for bucket in buckets) - 0.2 * top)
    points = [((b.at - since) / span * (_WIDTH - 4) + 2, _y(b.last, bottom, top)) for b in buckets]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    hard = curve.newest.hard
    limit = (
        ""
        if hard is None
        else f'<path class="hard" d="M0 {_y(max(hard, bottom), bottom, top):.1f}H{_WIDTH}"/>'
    )
    end = f'<circle cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2"/>'
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg class="spark" {size} aria-hidden="true">{limit}<polyline points="{line}"/>{end}</svg>'


def _y(level: float, bottom: float, top: float) -> float:
    return 2 + (_HEIGHT - 4) * (1 - (level - bottom) / (top - bottom))
