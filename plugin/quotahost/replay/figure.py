"""The figures of a replay: a factor, and a volume's consumption, each then and with the settings in question.

Grey is then, blue is with these settings; where these settings throttle or pause, the background says so. The page of
the report has the same colours (``quotahost.report.figure``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from matplotlib import dates
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quotahost.model import Factor, State
from quotahost.replay.values import Course, FactorPoint, Replay, UsePoint, Where
from quotahost.report.figure import COLOURS
from quotahost.report.values import in_utc
from quotahost.report.wording import show_bytes

_PARTS: Final = 500  # of the time: about one for each two pixels
_SHADES: Final = {State.THROTTLE: COLOURS["soft"], State.PAUSE: COLOURS["hard"]}
_APART: Final = 0.075  # least distance of two labels, as a part of the axes' height
_SILENT: Final = 20  # parts without a reading: the line is broken


def draw_factor(where: Where, replay: Replay) -> Figure:
    """The factor, then and with these settings."""
    figure, axes = _figure(replay, 1.9)
    points = _thinned(where.factors, replay)
    # To the end of the time: the last factor is still in force there.
    points = [*points, points[-1]._replace(at=replay.until)]
    at = [in_utc(point.at) for point in points]
    _shade(axes, where.factors, replay.until)
    then, new = {"drawstyle": "steps-post", **_THEN}, {"drawstyle": "steps-post", **_NEW}
    axes.plot(at, [point.then for point in points], **then)
    axes.plot(at, [point.new for point in points], **new)
    axes.set_ylim(-0.04, 1.06)
    return figure


def draw_use(course: Course, replay: Replay) -> Figure:
    """What is consumed, then and with these settings, and the limits of these settings."""
    figure, axes = _figure(replay, 2.9)
    parts = _unbroken(course.points[:: max(1, len(course.points) // _PARTS)], replay)
    for part in parts:
        at = [in_utc(point.at) for point in part]
        for name, level in (("soft", [p.soft for p in part]), ("hard", [p.hard for p in part])):
            known = [float("nan") if each is None else each for each in level]
            axes.plot(at, known, drawstyle="steps-post", color=COLOURS[name], linewidth=1.1, linestyle=(0, (5, 3)))
        axes.plot(at, [point.capacity for point in part], color=COLOURS["text"], linewidth=0.8)
        axes.plot(at, [point.then for point in part], **_THEN)
        axes.plot(at, [point.new for point in part], **_NEW)
    top = 1.04 * max(1, course.peak_then, course.peak_new, *(point.capacity for point in course.points))
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(lambda value, _: show_bytes(value))
    _labels(axes, course.points[-1], top)
    return figure


_THEN: Final[dict[str, Any]] = {"color": COLOURS["full"], "linewidth": 1.6, "linestyle": (0, (2, 1.5))}
_NEW: Final[dict[str, Any]] = {"color": COLOURS["line"], "linewidth": 1.5}


def _figure(replay: Replay, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(8.6, height), layout="constrained")
    figure.patch.set_alpha(0)
    axes: Any = figure.add_subplot()
    axes.patch.set_visible(False)
    # At least a second wide: matplotlib can't draw an axis of no length.
    axes.set_xlim(in_utc(replay.since), in_utc(max(replay.until, replay.since + 1)))
    untyped: Any = dates
    locator = untyped.AutoDateLocator(maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    axes.tick_params(colors=COLOURS["text"], labelsize=8, length=3)
    axes.xaxis.get_offset_text().set(color=COLOURS["text"], fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(COLOURS["grid"])
    axes.grid(axis="y", color=COLOURS["grid"], linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _thinned(points: Sequence[FactorPoint], replay: Replay) -> list[FactorPoint]:
    """The last of each part of the time, and the lowest before it: no short PAUSE is lost."""
    width = max(1e-9, (replay.until - replay.since) / _PARTS)
    parts: dict[int, list[FactorPoint]] = {}
    for point in points:
        parts.setdefault(int((point.at - replay.since) / width), []).append(point)
    kept: list[FactorPoint] = []
    for part in parts.values():
        lowest = [min(part, key=lambda p: p.then), min(part, key=lambda p: p.new), part[-1]]
        kept += sorted({point.at: point for point in lowest}.values())
    return kept


def _shade(axes: Any, points: Sequence[FactorPoint], until: float) -> None:
    """One stripe for each time in which these settings throttle or pause."""
    spans: list[tuple[State, float, float]] = []
    ends = [*(point.at for point in points[1:]), until]
    for point, end in zip(points, ends, strict=True):
        state = Factor(point.new).state
        if spans and spans[-1][0] is state:
            spans[-1] = (state, spans[-1][1], end)
        else:
            spans.append((state, point.at, end))
    for state, begin, end in spans:
        if state in _SHADES:
            axes.axvspan(in_utc(begin), in_utc(end), color=_SHADES[state], alpha=0.13, linewidth=0)


def _unbroken(points: Sequence[UsePoint], replay: Replay) -> list[list[UsePoint]]:
    """Parts without a long silence: no line is drawn over a time of which nothing is known."""
    usual = (replay.until - replay.since) / max(1, min(_PARTS, len(points)))
    parts = [[points[0]]]
    for before, point in pairwise(points):
        if point.at - before.at > _SILENT * usual:
            parts.append([])
        parts[-1].append(point)
    return parts


def _labels(axes: Any, last: UsePoint, top: float) -> None:
    """To the right of the axes, pushed down where levels lie close together."""
    above = 1.0 + _APART
    levels = {"full": last.capacity, "hard": last.hard, "soft": last.soft}
    known = sorted(((level, name) for name, level in levels.items() if level is not None), reverse=True)
    for level, name in known:
        above = min(level / top, above - _APART)
        colour = COLOURS["text" if name == "full" else name]
        axes.text(
            1.01, above, f"{name} {show_bytes(level)}", transform=axes.transAxes, color=colour, fontsize=8, va="center"
        )
