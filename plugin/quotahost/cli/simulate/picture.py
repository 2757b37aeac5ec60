"""Draws a recording: the disk against its limits, the factor, and bytes/s by client, with the state as background."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import typer

from quotahost.cli.simulate.recording import STEP, Recording
from quotahost.model import State

_COLOURS: Final = {State.THROTTLE: "#e6a700", State.PAUSE: "#c0392b"}
_SECOND: Final = 1000 // STEP  # samples


def check_drawing(file: Path) -> None:
    """Say now, before anything is played, that it can't be drawn there.

    Raises:
        typer.BadParameter: matplotlib is missing, or the name is no picture's.
    """
    if file.suffix not in (".png", ".svg"):
        raise typer.BadParameter(f"{file} is no FILE.png or FILE.svg", param_hint="--plot")
    try:
        import matplotlib.figure  # noqa: F401  (an extra: a broker does without)
    except ImportError:
        raise typer.BadParameter("--plot needs matplotlib; pip install matplotlib") from None


def draw(recording: Recording, title: str, file: Path) -> None:
    """Write the picture, as PNG or SVG by the file's name."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    disk, factor, rates = figure.subplots(3, sharex=True, height_ratios=(3, 1, 3))
    seconds = [sample.ms / 1000 for sample in recording.samples]
    disk.plot(seconds, [sample.used / 1e6 for sample in recording.samples], color="#333333", label="consumed")
    levels = (recording.bounds.soft, "soft limit", "#e6a700"), (recording.bounds.hard, "hard limit", "#c0392b")
    for level, name, colour in levels:
        disk.axhline(level / 1e6, color=colour, linestyle="dashed", linewidth=1, label=name)
    factor.plot(seconds, [sample.factor for sample in recording.samples], color="#333333", label="factor")
    for index, name in enumerate(recording.clients):
        rates.plot(seconds[_SECOND::_SECOND], _rates(recording, index), label=name)
    for axes in (disk, factor, rates):
        _tidy(axes, recording)
    disk.set(ylabel="MB")
    disk.set_title(title).set_parse_math(False)
    factor.set(ylabel="factor", ylim=(-0.05, 1.05))
    rates.set(xlabel="seconds", ylabel="MB/s", ylim=(0, None))
    with rc_context({"svg.fonttype": "none"}):  # text as text: letters as lines take as much space as the rest
        figure.savefig(file, dpi=120)


def _rates(recording: Recording, client: int) -> list[float]:
    """MB/s of each second."""
    sent = [sample.sent[client] for sample in recording.samples[::_SECOND]]
    return [(after - before) / 1e6 for before, after in pairwise(sent)]


def _tidy(axes: Any, recording: Recording) -> None:
    for state, begin, end in _spans(recording):
        if state in _COLOURS:
            axes.axvspan(begin / 1000, end / 1000, color=_COLOURS[state], alpha=0.12, linewidth=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def _spans(recording: Recording) -> list[tuple[State, int, int]]:
    """Each state with the times in ms from and to which it lasted."""
    spans: list[tuple[State, int, int]] = []
    for sample in recording.samples:
        if spans and spans[-1][0] is sample.state:
            spans[-1] = (sample.state, spans[-1][1], sample.ms + STEP)
        else:
            spans.append((sample.state, sample.ms, sample.ms + STEP))
    return spans


def show_size(size: float) -> str:
    """``1.50 GB``: three digits are enough for a table."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(size) >= scale:
            return f"{size / scale:,.2f} {unit}"
    return f"{size:,.0f} bytes"
