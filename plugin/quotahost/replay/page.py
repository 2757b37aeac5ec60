"""The replay as one HTML page, which needs nothing else: the table, each factor's figure, and the volumes'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quotahost.replay import wording
from quotahost.replay.figure import draw_factor, draw_use
from quotahost.replay.values import Replay
from quotahost.report import wording as report_wording
from quotahost.report.svg import as_svg

MOST: Final = 20  # figures of factors, and as many of volumes: those that would have been slowed longest


@dataclass(frozen=True, slots=True)
class _Section:
    """A figure as the template takes it; ``title`` is plain text, ``figure`` an <svg>."""

    title: str
    figure: Markup


def page(replay: Replay, name: str, drawn: Callable[[int], None] = lambda count: None) -> str:
    """The whole page.

    Args:
        replay: what the settings would have done.
        name: of the properties file.
        drawn: called after each figure, with the number of figures drawn so far.
    """
    factors, volumes = list[_Section](), list[_Section]()
    for where in replay.where[:MOST]:
        title = f"Factor of {wording.where(where, replay)}"
        factors.append(_Section(title, as_svg(draw_factor(where, replay), f"f{len(factors)}", title)))
        drawn(len(factors))
    for course in replay.volumes[:MOST]:
        title = wording.title(course.name, replay)
        volumes.append(_Section(title, as_svg(draw_use(course, replay), f"v{len(volumes)}", title)))
        drawn(len(factors) + len(volumes))
    templates = Environment(
        # The report's style, so that both pages look alike.
        loader=ChoiceLoader([PackageLoader("quotahost.replay", "."), PackageLoader("quotahost.report", ".")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,  # a misspelt name in the template fails instead of showing nothing
    )
    return templates.get_template("replay.html").render(
        replay=replay, name=name, factors=factors, volumes=volumes, words=wording, times=report_wording, most=MOST
    )
