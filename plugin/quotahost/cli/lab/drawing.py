"""matplotlib draws the pictures of ``simulate --plot``, ``report`` and ``replay``; only this module imports matplotlib.

A page of ``report`` or ``replay`` contains its pictures as SVG in the page's own colours. No curve is thinned out here:
matplotlib itself leaves out points that no pixel would show (``path.simplify``).
"""

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median_high
from typing import Any, Final, TypeVar

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from quotahost.cli.lab.curves import Bucket, Curve, Report, in_utc
from quotahost.cli.lab.play import Replay, ReplayedFactor, ReplayedVolume, UsePoint
from quotahost.cli.lab.world import STEP, Recording
from quotahost.model import Factor, State
from quotahost.units.show import show_bytes

# ``svg`` replaces each colour by the page's variable of the same name, so no two names may have the same colour.
COLOURS: Final = {
    "line": "#1f6feb", "soft": "#b87503", "hard": "#d1242f", "full": "#6e7781", "text": "#40464f", "grid": "#d8dee5",
}  # fmt: skip
_LEVELS: Final = {"full": "capacity", "soft": "soft", "hard": "hard"}  # by label and colour: the attribute of a point
_SHADES: Final = {State.THROTTLE: COLOURS["soft"], State.PAUSE: COLOURS["hard"]}
_THEN: Final[dict[str, Any]] = {"color": COLOURS["full"], "linewidth": 1.6, "linestyle": (0, (2, 1.5))}
_NEW: Final[dict[str, Any]] = {"color": COLOURS["line"], "linewidth": 1.5}
_TEXT: Final[dict[Any, str]] = {"svg.fonttype": "none"}  # text stays text: it is smaller and uses the page's font
_AHEAD: Final = 0.3  # the forecast covers at most this share of the time that the report spans
_APART: Final = 0.075  # the least distance between two labels, as a share of the axes' height
_SILENT: Final = 5  # the line breaks at a gap of more than so many times the median gap between two points
At = TypeVar("At", Bucket, UsePoint)


# ---- common parts of the figures ----


def _timeline(height: float, since: float, until: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(8.6, height), layout="constrained")
    axes: Any = figure.add_subplot()
    with rc_context({"date.converter": "concise"}):
        # The axis covers at least one second, because matplotlib can't draw an axis without a length.
        axes.set_xlim(in_utc(since), in_utc(max(until, since + 1.0)))
    axes.tick_params(colors=COLOURS["text"], labelsize=8, length=3)
    axes.xaxis.get_offset_text().set(color=COLOURS["text"], fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(COLOURS["grid"])
    axes.grid(axis="y", color=COLOURS["grid"], linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _levels(axes: Any, points: Sequence[At]) -> None:
    """Draw capacity and limits over time as steps; a value of None breaks the line."""
    at = [in_utc(point.at) for point in points]
    for name, attribute in _LEVELS.items():
        values = [getattr(point, attribute) for point in points]
        style = "-" if name == "full" else (0, (5, 3))
        axes.plot(at, values, drawstyle="steps-post", color=COLOURS[name], linewidth=1.1, linestyle=style)


def _scale(axes: Any, most: int, last: Bucket | UsePoint) -> None:
    """Set the axis to bytes up to ``most``, and label the levels at the right; labels that would overlap move down."""
    # The axis is at least one byte high: a volume may have no capacity, and matplotlib can't draw an axis of length 0.
    top = 1.04 * max(1, most)
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(lambda value, _: show_bytes(value))
    above = 1.0 + _APART
    levels = [(getattr(last, attribute), name == "full", name) for name, attribute in _LEVELS.items()]
    # The labels go from the top down. If a limit is equal to the capacity, the capacity's label is above.
    for level, _, name in sorted((each for each in levels if each[0] is not None), reverse=True):
        above = min(level / top, above - _APART)
        look = {"color": COLOURS[name], "fontsize": 8, "va": "center"}
        axes.text(1.01, above, f"{name} {show_bytes(level)}", transform=axes.transAxes, **look)


def _unbroken(points: Sequence[At]) -> list[list[At]]:
    """Split the points at long gaps, so that no line covers a time without readings."""
    gaps = [late.at - early.at for early, late in pairwise(points)]
    parts = [[points[0]]]
    for point, gap in zip(points[1:], gaps, strict=True):
        if gap > _SILENT * median_high(gaps):
            parts.append([])
        parts[-1].append(point)
    return parts


def _shade(axes: Any, states: Iterable[tuple[State, Any, Any]]) -> None:
    """Colour the background during THROTTLE and PAUSE; each state comes with its begin and its end on the axis."""
    for state, run in groupby(states, key=lambda span: span[0]):
        spans = list(run)
        if state in _SHADES:
            axes.axvspan(spans[0][1], spans[-1][2], color=_SHADES[state], alpha=0.13, linewidth=0)


def svg(figure: Figure) -> str:
    """The figure as SVG text after ``<svg``; its colours are the page's variables ``--line``, ``--soft`` and so on."""
    text, none = StringIO(), dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context(_TEXT):
        figure.savefig(text, format="svg", transparent=True, metadata=none)
    # The XML prolog is dropped, because an <svg> within HTML has none.
    drawn = text.getvalue().partition("<svg")[2]
    for name, colour in COLOURS.items():
        drawn = drawn.replace(colour, f"var(--{name})")
    return drawn


# ---- the report ----


def draw_volume(curve: Curve, report: Report) -> Figure:
    latest = curve.latest
    end = max(report.until + _AHEAD * (report.until - report.since), latest.at + 1.0)
    figure, axes = _timeline(2.9, report.since, end)
    _levels(axes, [*curve.buckets, latest._replace(at=end)])
    for part in _unbroken(curve.buckets):
        at = [in_utc(bucket.at) for bucket in part]
        low, high = [bucket.low for bucket in part], [bucket.high for bucket in part]
        axes.fill_between(at, low, high, color=COLOURS["line"], alpha=0.25, linewidth=0)
        mark = "o" if len(part) == 1 else None  # a line through one point can't be seen
        axes.plot(at, [bucket.last for bucket in part], marker=mark, markersize=3, **_NEW)
    rate = curve.fill_rate
    if rate is not None:
        # The forecast ends at the right edge, or earlier when the volume is full or empty.
        left = (latest.capacity if rate > 0 else 0) - latest.last
        seconds = end - latest.at if rate == 0 else max(0.0, min(end - latest.at, left / rate))
        at = [in_utc(latest.at), in_utc(latest.at + seconds)]
        axes.plot(at, [latest.last, latest.last + rate * seconds], color=COLOURS["line"], linestyle=":")
    axes.axvline(in_utc(report.until), color=COLOURS["grid"], linewidth=1)
    _scale(axes, max(max(bucket.high, bucket.capacity) for bucket in curve.buckets), latest)
    return figure


# ---- a replay ----


def draw_factor(factor: ReplayedFactor, replay: Replay) -> Figure:
    """Draw the factor then and with the new settings; the background shows when the new settings throttle or pause."""
    figure, axes = _timeline(1.9, replay.since, replay.until)
    # The line goes to the end of the time, because the last factor is still in force there.
    points = [*factor.points, factor.points[-1]._replace(at=replay.until)]
    at = [in_utc(point.at) for point in points]
    _shade(axes, zip((Factor(point.new).state for point in points), at, at[1:], strict=False))
    axes.plot(at, [point.then for point in points], drawstyle="steps-post", **_THEN)
    axes.plot(at, [point.new for point in points], drawstyle="steps-post", **_NEW)
    axes.set_ylim(-0.04, 1.06)
    return figure


def draw_use(volume: ReplayedVolume, replay: Replay) -> Figure:
    figure, axes = _timeline(2.9, replay.since, replay.until)
    for part in _unbroken(volume.points):
        _levels(axes, part)
        at = [in_utc(point.at) for point in part]
        axes.plot(at, [point.then for point in part], **_THEN)
        axes.plot(at, [point.new for point in part], **_NEW)
    most = max(*volume.peaks, *(point.capacity for point in volume.points))
    _scale(axes, most, volume.points[-1])
    return figure


# ---- simulate ----


def draw_run(recording: Recording, title: str, file: Path) -> None:
    """Draw the disk and its limits, the factor, and MB/s by client; the background shows the state."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    disk, factor, rates = figure.subplots(3, sharex=True, height_ratios=(3, 1, 3))
    samples, bounds = recording.samples, recording.bounds
    seconds = [sample.ms / 1000 for sample in samples]
    disk.plot(seconds, [sample.used / 1e6 for sample in samples], color="#333333", label="consumed")
    for level, name in ((bounds.soft, "soft"), (bounds.hard, "hard")):
        disk.axhline(level / 1e6, color=COLOURS[name], linestyle="dashed", linewidth=1, label=f"{name} limit")
    factor.plot(seconds, [sample.factor for sample in samples], color="#333333", label="factor")
    looked = samples[:: 1000 // STEP]  # a second apart
    for index, name in enumerate(recording.clients):
        mega = [(b.sent[index] - a.sent[index]) / (b.ms - a.ms) / 1000 for a, b in pairwise(looked)]
        rates.plot([sample.ms / 1000 for sample in looked[1:]], mega, label=name)
    for axes in (disk, factor, rates):
        _shade(axes, zip((sample.state for sample in samples), seconds, seconds[1:], strict=False))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    disk.set(ylabel="MB")
    disk.set_title(title).set_parse_math(False)
    factor.set(ylabel="factor", ylim=(-0.05, 1.05))
    rates.set(xlabel="seconds", ylabel="MB/s", ylim=(0, None))
    with rc_context(_TEXT):  # letters drawn as lines would double the file's size
        figure.savefig(file, dpi=120)


def draw_outcomes(seconds: Sequence[float], throttled: Mapping[str, Sequence[float]], file: Path) -> None:
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="seconds", ylabel="throttled for, in seconds")
    for form, values in throttled.items():
        axes.plot(seconds, values, marker=".", label=form)
    axes.legend(frameon=False)
    figure.savefig(file, dpi=120)
