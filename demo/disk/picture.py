"""Consumption against the limits, and throughput, over time: as a picture, a live table and a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from rich.console import Group
from rich.table import Table
from rich.text import Text

from demo.disk.story import Sample, Story

BAR: Final = 40
COLOURS: Final = {"blue": "#1f77b4", "green": "#2ca02c", "service": "#7f7f7f"}
STYLES: Final = {"OPEN": "green", "THROTTLE": "yellow", "PAUSE": "red"}


def live(story: Story, what: str) -> Group:
    """What is so right now."""
    sample = story.samples[-1]
    table = Table(title=what, title_justify="left")
    for column in ("volume", "", "to soft", "to hard", "factor", "state", "turned back"):
        table.add_column(column)
    table.add_row(
        f"{sample.consumed / 1e6:,.0f} MB",
        _bar(story, sample),
        f"{(story.soft - sample.consumed) / 1e6:,.0f} MB",
        f"{(story.hard - sample.consumed) / 1e6:,.0f} MB",
        f"{sample.factor:.2f}",
        Text(sample.state, style=STYLES[sample.state]),
        f"{sample.rejections:,.0f} requests",
    )
    rates = ", ".join(f"{user} {rate / 1e6:.1f} MB/s" for user, rate in sample.rates.items())
    return Group(table, Text(rates))


def _bar(story: Story, sample: Sample) -> Text:
    start = story.samples[0].consumed
    share = (sample.consumed - start) / max(1, story.hard - start)
    return Text("█" * max(0, min(BAR, round(BAR * share))), style=STYLES[sample.state])


def lines(story: Story) -> list[tuple[str, bool]]:
    """What the story shows, each with whether it is as it should be."""
    paused, freed, opened = story.paused_at, story.freed_at, story.open_at
    told = [("above the soft limit producers were slowed", story.throttled)]
    told.append(("at the hard limit they were stopped", paused is not None))
    appended = story.appended_while_paused()
    told.append(
        (f"while they were stopped {max(0, appended):,} bytes of theirs were appended", appended == 0)
    )
    if freed is not None and opened is not None:
        back = next((s.at for s in story.samples if s.at >= opened and sum(_of_two(s)) > 0), None)
        told.append((f"{opened - freed:.1f} s after the topic was deleted the state was OPEN", True))
        told.append((f"{(back or 0) - opened:.1f} s later they produced again", back is not None))
    return told


def _of_two(sample: Sample) -> list[float]:
    return [rate for user, rate in sample.rates.items() if user != "service"]


def draw(story: Story, file: Path) -> None:
    """Write a PNG: above consumption and the limits, below throughput; the state as background."""
    figure, (above, below) = pyplot.subplots(2, figsize=(10, 6), sharex=True, layout="constrained")
    times = [sample.at for sample in story.samples]
    above.plot(times, [sample.consumed / 1e6 for sample in story.samples], color="#333333", label="consumed")
    for level, name, colour in ((story.soft, "soft limit", "#e6a700"), (story.hard, "hard limit", "#c0392b")):
        above.axhline(level / 1e6, color=colour, linestyle="dashed", linewidth=1, label=name)
    for user, colour in COLOURS.items():
        below.plot(
            times, [sample.rates.get(user, 0) / 1e6 for sample in story.samples], color=colour, label=user
        )
    for axes in (above, below):
        _states(axes, story)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    above.set(ylabel="MB", title="A disk that fills: consumption against its limits, and throughput")
    below.set(xlabel="seconds", ylabel="MB/s", ylim=(0, None))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def _states(axes: Any, story: Story) -> None:
    colours = {"THROTTLE": "#e6a700", "PAUSE": "#c0392b"}
    for one, other in zip(story.samples, story.samples[1:], strict=False):
        if one.state in colours:
            axes.axvspan(one.at, other.at, color=colours[one.state], alpha=0.12, linewidth=0)
