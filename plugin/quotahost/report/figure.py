"""One volume's curve, its limits and its forecast, drawn by matplotlib.

``svg`` puts the figure into the page, ``pictures`` into a PNG.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median_high
from typing import Any, Final

from matplotlib import dates
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quotahost.report.values import Bucket, Curve, Report, in_utc
from quotahost.report.wording import show_bytes, show_when
from quotahost.text import printable

# ``svg`` replaces each by the page's variable of the same name, so no two may be the same.
COLOURS: Final = {
    "line": "#1f6feb",
    "soft": "#b87503",
    "hard": "#d1242f",
    "full": "#6e7781",
    "text": "#40464f",
    "grid": "#d8dee5",
}
_AHEAD: Final = 0.3  # the forecast is drawn for at most this part of the time that the report spans
_APART: Final = 0.075  # least distance of two labels, as a part of the axes' height
_SILENT: Final = 5  # times the usual distance of two buckets: the line is broken


def draw(curve: Curve, report: Report, titled: bool = False) -> Figure:
    """A figure with a transparent background; ``titled`` names the volume in it."""
    figure = Figure(figsize=(8.6, 2.9), layout="constrained")
    # The page's background, light or dark, shows through.
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    _limits(axes, curve)
    _consumed(axes, curve)
    # At least a second wide: matplotlib can't draw an axis of no length.
    end = max(report.until.timestamp() + _AHEAD * report.span.total_seconds(), curve.newest.at + 1.0)
    _forecast(axes, curve, end)
    _frame(axes, curve, report, end)
    if titled:
        cluster, broker, volume = map(printable, curve.name)
        title = f"{cluster}   broker {broker}   {volume}"
        # A volume's name may contain dollars, which are no formula.
        axes.set_title(title, loc="left", fontsize=10, color=COLOURS["text"]).set_parse_math(False)
        when = f"hard limit: {show_when(curve, curve.newest.hard)}"
        axes.set_title(when, loc="right", fontsize=9, color=COLOURS["text"])
    return figure


def _consumed(axes: Any, curve: Curve) -> None:
    for part in _unbroken(curve.buckets):
        at = [in_utc(bucket.at) for bucket in part]
        low, high = [bucket.low for bucket in part], [bucket.high for bucket in part]
        axes.fill_between(at, low, high, color=COLOURS["line"], alpha=0.25, linewidth=0)
        mark = "o" if len(part) == 1 else None  # a line through one point can't be seen
        axes.plot(at, [b.last for b in part], color=COLOURS["line"], linewidth=1.5, marker=mark, markersize=3)


def _unbroken(buckets: tuple[Bucket, ...]) -> list[list[Bucket]]:
    """Parts without a long silence: no line is drawn over a time of which nothing is known."""
    gaps = [late.at - early.at for early, late in pairwise(buckets)]
    longest = _SILENT * median_high(gaps) if gaps else 0.0
    parts = [[buckets[0]]]
    for bucket, gap in zip(buckets[1:], gaps, strict=True):
        if gap > longest:
            parts.append([])
        parts[-1].append(bucket)
    return parts


def _limits(axes: Any, curve: Curve) -> None:
    at = [in_utc(bucket.at) for bucket in curve.buckets]
    levels: dict[str, list[int | None]] = {
        "full": [bucket.capacity for bucket in curve.buckets],
        "soft": [bucket.soft for bucket in curve.buckets],
        "hard": [bucket.hard for bucket in curve.buckets],
    }
    for name, level in levels.items():
        style = "-" if name == "full" else (0, (5, 3))
        known = [float("nan") if each is None else each for each in level]  # NaN breaks the line
        axes.plot(at, known, drawstyle="steps-post", color=COLOURS[name], linewidth=1.1, linestyle=style)


def _forecast(axes: Any, curve: Curve, end: float) -> None:
    """Continue each level to the right edge, and the curve to where the volume is full or empty.

    Args:
        axes: to draw in.
        curve: of the volume.
        end: the right edge, in seconds since 1970.
    """
    now, rate = curve.newest, curve.fill_rate
    for name, level in _levels(curve).items():
        axes.hlines(level, in_utc(now.at), in_utc(end), color=COLOURS[name], linewidth=0.8, alpha=0.6)
    if rate is not None and now.at + 1.0 < end:
        left = (now.capacity if rate > 0 else 0) - now.last
        seconds = end - now.at if rate == 0 else max(0.0, min(end - now.at, left / rate))
        at = [in_utc(now.at), in_utc(now.at + seconds)]
        axes.plot(at, [now.last, now.last + rate * seconds], color=COLOURS["line"], linestyle=":")


def _levels(curve: Curve) -> dict[str, int]:
    now = curve.newest
    levels = {"full": now.capacity, "soft": now.soft, "hard": now.hard}
    return {name: level for name, level in levels.items() if level is not None}


def _frame(axes: Any, curve: Curve, report: Report, end: float) -> None:
    # At least a byte high: a volume may have no capacity, and matplotlib can't draw an axis of no length.
    top = 1.04 * max(1, *(max(bucket.high, bucket.capacity) for bucket in curve.buckets))
    axes.set(xlim=(report.since, in_utc(end)), ylim=(0, top))
    axes.axvline(report.until, color=COLOURS["grid"], linewidth=1)
    untyped: Any = dates
    locator = untyped.AutoDateLocator(maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(lambda value, _: show_bytes(value))
    axes.tick_params(colors=COLOURS["text"], labelsize=8, length=3)
    axes.xaxis.get_offset_text().set(color=COLOURS["text"], fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(COLOURS["grid"])
    axes.grid(axis="y", color=COLOURS["grid"], linewidth=0.6)
    axes.set_axisbelow(True)
    _labels(axes, curve, top)


def _labels(axes: Any, curve: Curve, top: float) -> None:
    """To the right of the axes, pushed down where levels lie close together."""
    above = 1.0 + _APART
    # From the top down. The capacity comes first where a limit is equal to it.
    levels = sorted(_levels(curve).items(), key=lambda item: (item[1], item[0] == "full"), reverse=True)
    for name, level in levels:
        above = min(level / top, above - _APART)
        look = {"color": COLOURS[name], "fontsize": 8, "va": "center"}
        axes.text(1.01, above, f"{name} {show_bytes(level)}", transform=axes.transAxes, **look)
