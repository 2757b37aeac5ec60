"""One volume's curve, its limits and its forecast, by matplotlib."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from matplotlib import dates
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quotahost.report.values import Bucket, Curve, Report, in_utc
from quotahost.report.wording import show_bytes, show_when

# The page replaces these by variables of its own, so each must be another one.
COLOURS: Final = {
    "line": "#1f6feb",
    "soft": "#b87503",
    "hard": "#d1242f",
    "full": "#6e7781",
    "text": "#40464f",
    "grid": "#d8dee5",
}
_AHEAD: Final = 0.3  # the forecast is drawn for at most this part of what is seen
_APART: Final = 0.075  # labels, of the axes' height
_SILENT: Final = 5  # times the usual distance of two buckets: the line is broken


def draw(curve: Curve, report: Report, titled: bool = False) -> Figure:
    """A figure with a transparent background; ``titled`` names the volume in it."""
    figure = Figure(figsize=(8.6, 2.9), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    _limits(axes, curve)
    _consumed(axes, curve)
    end = _forecast(axes, curve, report)
    _frame(axes, curve, report, end)
    if titled:
        title = f"{curve.name.cluster}   broker {curve.name.broker}   {curve.name.volume}"
        axes.set_title(title, loc="left", fontsize=10, color=COLOURS["text"]).set_parse_math(False)
        when = f"hard limit: {show_when(curve, curve.newest.hard)}"
        axes.set_title(when, loc="right", fontsize=9, color=COLOURS["text"])
    return figure


def _consumed(axes: Any, curve: Curve) -> None:
    for part in _unbroken(curve.buckets):
        at = [in_utc(bucket.at) for bucket in part]
        low, high = [bucket.low for bucket in part], [bucket.high for bucket in part]
        axes.fill_between(at, low, high, color=COLOURS["line"], alpha=0.25, linewidth=0)
        mark = "o" if len(part) == 1 else None
        axes.plot(at, [b.last for b in part], color=COLOURS["line"], linewidth=1.5, marker=mark, markersize=3)


def _unbroken(buckets: tuple[Bucket, ...]) -> list[list[Bucket]]:
    """Parts without a long silence: no line is drawn where nothing was heard."""
    gaps = sorted(late.at - early.at for early, late in pairwise(buckets))
    most = _SILENT * gaps[len(gaps) // 2] if gaps else 0.0
    parts = [[buckets[0]]]
    for bucket in buckets[1:]:
        if bucket.at - parts[-1][-1].at > most:
            parts.append([])
        parts[-1].append(bucket)
    return parts


def _limits(axes: Any, curve: Curve) -> None:
    at = [in_utc(bucket.at) for bucket in curve.buckets]
    levels = {
        "full": [float(bucket.capacity) for bucket in curve.buckets],
        "soft": [_or_nan(bucket.soft) for bucket in curve.buckets],
        "hard": [_or_nan(bucket.hard) for bucket in curve.buckets],
    }
    for name, level in levels.items():
        look = {"color": COLOURS[name], "linewidth": 1.1, "linestyle": "-" if name == "full" else (0, (5, 3))}
        axes.plot(at, level, drawstyle="steps-post", **look)


def _or_nan(level: int | None) -> float:
    return float("nan") if level is None else float(level)


def _forecast(axes: Any, curve: Curve, report: Report) -> float:
    """Draws it and each level on to the right edge, which it answers, in seconds since 1970."""
    now = curve.newest
    seen = report.until.timestamp() - report.since.timestamp()
    end = max(report.until.timestamp() + _AHEAD * seen, now.at + 1.0)
    for name, level in _levels(curve).items():
        axes.hlines(level, in_utc(now.at), in_utc(end), color=COLOURS[name], linewidth=0.8, alpha=0.6)
    if curve.fill_rate is not None and now.at + 1.0 < end:
        # Up to where it is full, down to where it is empty.
        reach = (now.capacity if curve.fill_rate > 0 else 0) - now.last
        seconds = (
            end - now.at if curve.fill_rate == 0 else max(0.0, min(end - now.at, reach / curve.fill_rate))
        )
        times = [in_utc(now.at), in_utc(now.at + seconds)]
        axes.plot(
            times, [now.last, now.last + curve.fill_rate * seconds], color=COLOURS["line"], linestyle=":"
        )
    return end


def _levels(curve: Curve) -> dict[str, int]:
    now = curve.newest
    levels = {"full": now.capacity, "soft": now.soft, "hard": now.hard}
    return {name: level for name, level in levels.items() if level is not None}


def _frame(axes: Any, curve: Curve, report: Report, end: float) -> None:
    top = max(1, curve.newest.capacity, *(max(bucket.high, bucket.capacity) for bucket in curve.buckets))
    axes.set(xlim=(report.since, in_utc(end)), ylim=(0, top * 1.04))
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
    _labels(axes, curve, top * 1.04)


def _labels(axes: Any, curve: Curve, top: float) -> None:
    """To the right of the axes, pushed down where levels lie close."""
    above = 1.0 + _APART
    for name, level in sorted(
        _levels(curve).items(), key=lambda item: (item[1], item[0] == "full"), reverse=True
    ):
        above = min(level / top, above - _APART)
        look = {"color": COLOURS[name], "fontsize": 8, "va": "center"}
        axes.text(1.01, above, f"{name} {show_bytes(level)}", transform=axes.transAxes, **look)
