"""docs/disk.png: a disk that fills and is emptied again, under quotahost and under Strimzi's plugin."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.disks.brokers import Whose, brokers, delete, free, min_free, stopped
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode

FILE: Final = Path(__file__).parents[2] / "docs/disk.png"
HEADROOM: Final = 600_000_000  # bytes from the old data to the hard limit
SOFT_AT: Final = 0.5  # of the headroom
OLD: Final = 300_000_000  # bytes that somebody deletes
DELETED_AT: Final = 100.0  # seconds
QUOTA: Final = "10000000"  # bytes/s
STEP: Final = 1.0
END: Final = 180.0
COLOURS: Final = {Whose.FENCED: "#1f77b4", Whose.THEIRS: "#d62728"}


@dataclass
class Course:
    """What happened: bytes used above the start and bytes/s over the last 5 s, by seconds."""

    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    stopped_at: float | None = None


def run(whose: Whose) -> Course:
    """An eager producer under a quota of 10 MB/s; at 100 s the old data is deleted."""
    course = Course()
    # The limit is set before the old data comes.
    soft = (OLD + HEADROOM * SOFT_AT) / (OLD + HEADROOM)
    ours = whose is not Whose.THEIRS
    with brokers(whose, 1, OLD + HEADROOM, soft if ours else None, static_produce=QUOTA) as cluster:
        (node,) = cluster.brokers
        create_topic(node, "old")
        create_topic(node, "t")
        fill_topic(node.client_config("filler", "filler"), "old", OLD, 100_000)
        with ProducerLoad(node.client_config("app", "app"), "t") as load:
            _watch(course, node, load.meter)
    return course


def _watch(course: Course, node: KafkaNode, meter: Meter) -> None:
    full = min_free(node) + HEADROOM  # free at the start, the old data included
    deleted = False
    while (now := time.monotonic() - meter.started) < END:
        if now > DELETED_AT and not deleted:
            delete(node, "old")
            deleted = True
        if stopped(node) and course.stopped_at is None:
            course.stopped_at = now
        course.seconds.append(now)
        course.used.append(full - free(node.directory))
        course.rates.append(meter.rate_over(min(5.0, max(now, 0.1))))
        time.sleep(STEP)


def draw(courses: dict[Whose, Course], file: Path = FILE) -> None:
    """Write the PNG."""
    figure, (disk, rate) = pyplot.subplots(2, 1, figsize=(8, 5.5), sharex=True, layout="constrained")
    for whose, course in courses.items():
        look = {"color": COLOURS[whose], "label": str(whose)}
        disk.plot(course.seconds, [used / 1e6 for used in course.used], **look)
        rate.plot(course.seconds, [each / 1e6 for each in course.rates], **look)
        if course.stopped_at is not None:
            rate.axvline(course.stopped_at, color=COLOURS[whose], linestyle=":", linewidth=1)
    for share, name in ((SOFT_AT, "soft limit"), (1.0, "hard limit")):
        level = HEADROOM * share / 1e6
        disk.axhline(level, color="grey", linestyle="--", linewidth=1)
        disk.text(END, level, name, ha="right", va="bottom", color="grey", fontsize=8)
    disk.annotate("old data deleted", (DELETED_AT, 0), ha="center", fontsize=8, color="grey")
    disk.set(ylabel="MB used above the start", title="A disk fills, and an operator makes room")
    rate.set(ylabel="MB/s produced (5 s)", xlabel="seconds (dotted: full stop)", ylim=(0, None))
    for axes in (disk, rate):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    rate.legend(frameon=False)
    figure.savefig(file, dpi=90)


def main() -> str:
    """Both runs, and the picture."""
    courses = {whose: run(whose) for whose in COLOURS}
    draw(courses)
    return f"![A disk fills, and an operator makes room](../docs/{FILE.name})"
