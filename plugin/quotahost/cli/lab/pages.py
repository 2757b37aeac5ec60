"""Reports and replays as one HTML page each, which needs nothing but itself: no script, no font, no network.

Names of clusters, volumes and clients come from records of any origin, so the templates escape all text; only the
figures, which matplotlib makes, are markup already.
"""

from collections.abc import Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quotahost.cli.lab.curves import STATES, Report
from quotahost.cli.lab.drawing import draw_factor, draw_use, draw_volume, svg
from quotahost.cli.lab.play import Replay, Table
from quotahost.text import printable
from quotahost.units import show

_MOST: Final = 20  # figures of a replay's factors, and as many of volumes: those that would have been slowed longest


def report_page(report: Report) -> str:
    volumes = [(curve, _figure(draw_volume(curve, report), report.title(curve))) for curve in report.curves]
    return _render("report.html", report=report, volumes=volumes, states=STATES)


def replay_page(replay: Replay, name: str, tables: Sequence[Table]) -> str:
    """A replay's whole page, of the properties file of this ``name``; ``tables`` are the same as in the terminal."""
    factors = sorted(replay.factors, key=lambda factor: factor.new.held, reverse=True)
    drawn = [(f"Factor of {replay.whose(factor)}", draw_factor(factor, replay)) for factor in factors[:_MOST]]
    drawn += [(volume.name.title(replay.several), draw_use(volume, replay)) for volume in replay.volumes[:_MOST]]
    figures = [(title, _figure(figure, title)) for title, figure in drawn]
    return _render("replay.html", name=name, replay=replay, tables=tables, figures=figures)


def _figure(figure: Any, label: str) -> Markup:
    """An inline <svg>; a screen reader says the label, a plain text."""
    # format escapes the label: a volume's name may come from anybody who writes to the topic.
    labelled = Markup('<svg role="img" aria-label="{}"').format(label)
    return labelled + Markup(svg(figure).removeprefix("<svg"))


def _render(template: str, **values: object) -> str:
    # A misspelt name in a template fails instead of showing nothing.
    templates = Environment(
        loader=PackageLoader("quotahost.cli.lab", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )  # fmt: skip
    templates.filters["printable"] = printable
    return templates.get_template(template).render(words=show, **values)
