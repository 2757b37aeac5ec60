"""Draws docs/disk.png: a disk that fills and is emptied again, under quotahost and under Strimzi's plugin."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.disks.brokers import Contender, brokers, free_bytes, is_stopped, min_free
from harness.clients.meter import Meter
from harness.clients.producer import ProducerLoad, fill_topic
from harness.kafka.admin import create_topic, delete_topics
from harness.kafka.node import KafkaNode

FILE: Final = Path(__file__).parents[2] / "docs/disk.png"
HEADROOM: Final = 600_000_000  # bytes from the old data to the hard limit
SOFT_AT: Final = 0.5  # of the headroom
OLD: Final = 300_000_000  # bytes of the old data, which is deleted
DELETED_AT: Final = 100.0  # seconds
QUOTA: Final = "10000000"  # bytes/s
STEP: Final = 1.0  # seconds
END: Final = 180.0  # seconds
COLOURS: Final = {Contender.WITH_FENCE: "#1f77b4", Contender.STRIMZI: "#d62728"}


@dataclass
class DiskRun:
    """One run: at each moment (s) the bytes used above the start, and the bytes/s over the last 5 s."""

    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    stopped_at: float | None = None


def run(contender: Contender) -> DiskRun:
    """Runs an eager producer under a quota of 10 MB/s; after 100 s the old data is deleted."""
    disk_run = DiskRun()
    # The limits are set before the old data is written, so its size is added.
    soft = (OLD + HEADROOM * SOFT_AT) / (OLD + HEADROOM)
    ours = contender is not Contender.STRIMZI
    with brokers(contender, 1, OLD + HEADROOM, soft if ours else None, static_produce=QUOTA) as cluster:
        (node,) = cluster.brokers
        create_topic(node, "old")
        create_topic(node, "t")
        fill_topic(node.client_config("filler", "filler"), "old", OLD, 100_000)
        with ProducerLoad(node.client_config("app", "app"), "t") as load:
            _watch(disk_run, node, load.meter)
    return disk_run


def _watch(disk_run: DiskRun, node: KafkaNode, meter: Meter) -> None:
    full = min_free(node) + HEADROOM  # free at the start, the old data included
    deleted = False
    while (now := time.monotonic() - meter.started) < END:
        if now > DELETED_AT and not deleted:
            delete_topics(node, "old")
            deleted = True
        if is_stopped(node) and disk_run.stopped_at is None:
            disk_run.stopped_at = now
        disk_run.seconds.append(now)
        disk_run.used.append(full - free_bytes(node.directory))
        disk_run.rates.append(meter.rate_over(min(5.0, max(now, 0.1))))
        time.sleep(STEP)


def draw(disk_runs: dict[Contender, DiskRun], file: Path = FILE) -> None:
    """Draws both runs into the PNG file."""
    figure, (disk, rate) = pyplot.subplots(2, 1, figsize=(8, 5.5), sharex=True, layout="constrained")
    for contender, disk_run in disk_runs.items():
        look = {"color": COLOURS[contender], "label": str(contender)}
        disk.plot(disk_run.seconds, [used / 1e6 for used in disk_run.used], **look)
        rate.plot(disk_run.seconds, [each / 1e6 for each in disk_run.rates], **look)
        if disk_run.stopped_at is not None:
            rate.axvline(disk_run.stopped_at, color=COLOURS[contender], linestyle=":", linewidth=1)
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
    """Runs both plugins and draws the picture; returns the Markdown that shows it."""
    disk_runs = {contender: run(contender) for contender in COLOURS}
    draw(disk_runs)
    return f"![A disk fills, and an operator makes room](../docs/{FILE.name})"
