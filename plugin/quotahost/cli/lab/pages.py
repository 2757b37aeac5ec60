"""Reports and replays become one HTML page each, which loads no script and no font, and needs no network.

Any client that may write to the topics can choose the names of clusters, volumes and clients, so the template escapes
all text. The only exception is the figures, which matplotlib returns as markup.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quotahost.base.text import printable
from quotahost.cli.lab.curves import Report
from quotahost.cli.lab.drawing import draw_factor, draw_use, draw_volume, svg
from quotahost.cli.lab.play import Replay, Table
from quotahost.units import show

_MOST: Final = 20  # figures of factors in a replay, and of volumes: those that would have been held back longest
#: The legend of the figures: the CSS class of a line or colour, and its meaning.
_OF_REPORT: Final = (
    ("", "consumed"), ("band", "least and most in between"), ("ahead", "forecast at the present fill rate"),
    ("soft", "soft limit"), ("hard", "hard limit"), ("full", "capacity"),
)  # fmt: skip
_OF_REPLAY: Final = (
    ("then", "then"), ("", "with these settings"), ("throttle", "throttled with these settings"),
    ("pause", "paused with these settings"), ("soft", "their soft limit"), ("hard", "their hard limit"),
    ("full", "capacity"),
)  # fmt: skip


def report_page(report: Report, table: Table) -> str:
    """The whole page of a report, with the same table as in the terminal."""
    recent = show.show_span(report.recent)
    order = f"Worst first: by the share of its hard limit that each volume will have consumed {recent} from now."
    note = f"{order} Fill rates are of the last {recent}. All times are UTC."
    drawn = ((report.title(curve), draw_volume(curve, report)) for curve in report.curves)
    title = f"Volumes of {', '.join(map(printable, report.clusters))}"
    return _page(title, report, [note], [table], _OF_REPORT, drawn)


def replay_page(replay: Replay, name: str, tables: Sequence[Table]) -> str:
    """The whole page of a replay of the properties file ``name``, with the same tables as in the terminal."""
    factors = sorted(replay.factors, key=lambda factor: factor.new.held, reverse=True)
    drawn = [(f"Factor of {replay.whose(factor)}", draw_factor(factor, replay)) for factor in factors[:_MOST]]
    drawn += [(volume.name.title(replay.several), draw_use(volume, replay)) for volume in replay.volumes[:_MOST]]
    return _page(f"What {name} would have done", replay, replay.notes, tables, _OF_REPLAY, drawn)


def _page(
    title: str, shown: Report | Replay, notes: Sequence[str], tables: Sequence[Table],
    key: Sequence[tuple[str, str]], drawn: Iterable[tuple[str, Any]],
) -> str:  # fmt: skip
    # StrictUndefined: a misspelt name in the template raises an error, where jinja2's default shows nothing.
    templates = Environment(
        loader=PackageLoader("quotahost.cli.lab", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )  # fmt: skip
    # Markup.format() escapes the name, which a screen reader reads aloud: any client with write access may choose it.
    labelled = Markup('<svg role="img" aria-label="{}"')
    figures = [(name, labelled.format(name) + Markup(svg(figure))) for name, figure in drawn]
    page = templates.get_template("page.html")
    return page.render(words=show, title=title, shown=shown, notes=notes, tables=tables, key=key, figures=figures)
