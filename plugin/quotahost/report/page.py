"""The report as one HTML page, which needs nothing but itself: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Final

from quotahost.report import wording as words
from quotahost.report.figure import draw
from quotahost.report.svg import as_svg, sparkline
from quotahost.report.values import Curve, Report

_HEADS: Final = ("volume", "#consumed", "of its capacity", "#fill rate", "time to hard limit", "course")
_KEY: Final = (
    ("", "consumed"),
    ("band", "least and most in between"),
    ("ahead", "forecast at the present fill rate"),
    ("soft", "soft limit"),
    ("hard", "hard limit"),
    ("full", "capacity"),
)


def page(report: Report, drawn: Callable[[int], None] = lambda count: None) -> str:
    """The whole page. Names in it come from records of any origin: all are escaped.

    Args:
        report: what was found.
        drawn: is told how many curves are drawn so far.
    """
    sections = []
    for number, curve in enumerate(report.curves, 1):
        sections.append(_section(number, curve, report))
        drawn(number)
    return "\n".join([*_head(report), _table(report), _key(), *sections, "</body></html>", ""])


def _head(report: Report) -> list[str]:
    clusters = escape(", ".join(report.clusters))
    style = files("quotahost.report").joinpath("page.css").read_text(encoding="utf-8")
    few = len(report.curves)
    shown = f"{few} of {report.known:,} volumes" if few < report.known else _all(few)
    recent = words.show_span(report.recent)
    return [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Volumes of {clusters}</title><style>{style}</style></head><body>",
        f"<h1>Volumes of {clusters}</h1>",
        f'<p>{words.show_range(report)} <span class="dim">({words.show_span(report.until - report.since)})</span></p>',
        f'<p class="dim">{shown}, worst first: by the share of its hard limit that each will have consumed'
        f" {recent} from now. Fill rates are of the last {recent}. All times are UTC.</p>",
    ]


def _all(count: int) -> str:
    return f"All {count} volumes" if count > 1 else "One volume"


def _table(report: Report) -> str:
    heads = "".join(
        f'<th class="number">{head[1:]}</th>' if head.startswith("#") else f"<th>{head}</th>"
        for head in _HEADS
    )
    rows = "\n".join(_row(number, curve, report) for number, curve in enumerate(report.curves, 1))
    return (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )


def _row(number: int, curve: Curve, report: Report) -> str:
    state = words.state(curve)
    of = f' <span class="dim">of {words.show_bytes(curve.newest.capacity)}</span>'
    told = f'<div class="state {state}">{words.STATES[state]}</div>' if words.STATES[state] else ""
    return (
        f'<tr class="{state}"><td class="name"><a href="#v{number}">{_name(curve, report)}</a>{told}</td>'
        f'<td class="number">{words.show_bytes(curve.newest.last)}{of}</td>'
        f"<td>{words.show_share(curve.share)}{_bar(curve)}</td>"
        f'<td class="number">{words.show_rate(curve.fill_rate)}</td><td>{words.show_to_hard(curve)}</td>'
        f"<td>{sparkline(curve)}</td></tr>"
    )


def _name(curve: Curve, report: Report) -> str:
    cluster = f"{curve.name.cluster} / " if len(report.clusters) > 1 else ""
    return escape(f"{cluster}broker {curve.name.broker}: {curve.name.volume}")


def _bar(curve: Curve) -> str:
    now = curve.newest
    if not now.capacity:
        return ""
    marks = "".join(
        f'<b class="{kind}" style="left:{min(99.0, 100 * level / now.capacity):.1f}%"></b>'
        for kind, level in (("soft", now.soft), ("hard", now.hard))
        if level is not None
    )
    return f'<div class="bar"><i style="width:{min(100.0, 100 * now.last / now.capacity):.1f}%"></i>{marks}</div>'


def _section(number: int, curve: Curve, report: Report) -> str:
    now, state = curve.newest, words.state(curve)
    facts = [
        ("consumed", f"{words.show_bytes(now.last)} ({words.show_share(curve.share)})", ""),
        ("fill rate", words.show_rate(curve.fill_rate), ""),
        ("soft limit", words.show_when(curve, now.soft), "soft" if state != "below" else ""),
        ("hard limit", words.show_when(curve, now.hard), "hard" if state == "hard" else ""),
        ("full", words.show_when(curve, now.capacity), ""),
    ]
    listed = "".join(
        f'<div><dt>{what}</dt><dd class="{kind}">{text}</dd></div>' for what, text, kind in facts
    )
    name = _name(curve, report)
    svg = as_svg(draw(curve, report), f"v{number}", name)
    return f'<section id="v{number}" class="{state}"><h2>{name}</h2><dl>{listed}</dl>\n{svg}</section>'


def _key() -> str:
    return (
        '<p class="key dim">' + "".join(f'<span class="{kind}">{text}</span>' for kind, text in _KEY) + "</p>"
    )
