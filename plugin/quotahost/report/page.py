"""The report as one HTML page, which needs nothing but itself: no script, no font, no network.

``page.html`` is the template and ``page.css`` its style. Names of clusters and volumes come from records of any
origin, so the template escapes all text; only the figures, which matplotlib makes, are markup already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quotahost.report import wording
from quotahost.report.figure import draw
from quotahost.report.svg import Sparkline, as_svg, sparkline
from quotahost.report.values import Curve, Report


@dataclass(frozen=True, slots=True)
class _Volume:
    """A curve as the template takes it; ``title`` is plain text, ``figure`` an <svg>."""

    curve: Curve
    title: str
    state: str
    sparkline: Sparkline
    figure: Markup


def page(report: Report, drawn: Callable[[int], None] = lambda count: None) -> str:
    """The whole page.

    Args:
        report: what was found in the history.
        drawn: called after each curve, with the number of curves drawn so far.
    """
    volumes = []
    for number, curve in enumerate(report.curves, 1):
        title = wording.title(curve, report)
        figure = as_svg(draw(curve, report), f"v{number}", title)
        volumes.append(_Volume(curve, title, wording.state(curve), sparkline(curve), figure))
        drawn(number)
    templates = Environment(
        loader=PackageLoader("quotahost.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,  # a misspelt name in the template fails instead of showing nothing
    )
    return templates.get_template("page.html").render(report=report, volumes=volumes, words=wording)
