"""Draws the Spark part's picture: the brokers' factors, the source that answers, and the throughput over time."""

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from matplotlib import pyplot

from demo.pictures import save, tidy
from demo.spark.acts import Recording
from demo.spark.cluster import RECORD_SOURCE, SNAPSHOT_SOURCE

COLOURS: Final = {1: "#1f77b4", 2: "#2ca02c", 3: "#c0392b"}
WIDTHS: Final = {1: 7.0, 2: 4.0, 3: 1.5}  # the lines lie on each other, so the lower ones are wider
SOURCES: Final = {RECORD_SOURCE: "#6a51a3", SNAPSHOT_SOURCE: "#e6a700"}


def draw(recording: Recording, file: Path) -> None:
    """Draws a PNG: factors above, throughput below, between them the answering source as a band; marks are lines."""
    figure, (above, band, below) = pyplot.subplots(
        3, figsize=(10, 6.5), sharex=True, layout="constrained", height_ratios=(5, 1, 4)
    )
    times = [sample.at for sample in recording.samples]
    for broker, colour in COLOURS.items():
        broker_sample = [sample.brokers[broker] for sample in recording.samples]
        style = {"color": colour, "label": f"broker {broker}"}
        above.plot(times, [each.factor for each in broker_sample], linewidth=WIDTHS[broker], **style)
        below.plot(times, [each.rate / 1e6 for each in broker_sample], linewidth=1.2, **style)
    _sources(band, recording)
    _marks(above, (above, below), recording)
    tidy((above, band, below))
    above.set(ylabel="factor", ylim=(-0.04, 1.06))
    above.set_title("One full disk stops three brokers, with Spark and without", pad=34)
    below.set(xlabel="seconds", xlim=(0, times[-1]), ylabel="MB/s, last 2 s", ylim=(0, None))
    save(figure, file)


def _sources(axes: Any, recording: Recording) -> None:
    for source, colour in SOURCES.items():
        axes.plot([], [], color=colour, linewidth=6, label=source)
    for one, other in pairwise(recording.samples):
        for row, broker in enumerate(one.brokers):
            colour = SOURCES.get(one.brokers[broker].source, "#dddddd")
            axes.barh(row, other.at - one.at, left=one.at, height=0.7, color=colour, linewidth=0)
    axes.set_yticks(range(3), [str(broker) for broker in COLOURS], fontsize=8)
    axes.set_ylim(2.6, -0.6)
    axes.set_ylabel("source", fontsize=9)


def _marks(top: Any, every: tuple[Any, ...], recording: Recording) -> None:
    for number, (word, at) in enumerate(recording.marks.items()):
        for axes in every:
            axes.axvline(at, color="#555555", linestyle="dotted", linewidth=1)
        top.annotate(
            word,
            (at, 1.06),
            xytext=(0, 4 + 12 * (number % 2)),  # in two rows, because some marks are close to each other
            textcoords="offset points",
            ha="center",
            fontsize=9,
            annotation_clip=False,
        )
