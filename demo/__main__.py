"""Runs the demo: ``python -m demo``; with ``SPARK=1`` in the environment, the Spark pipeline's part too.

Exit code 1 if something was not as it should be, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from demo.disk import picture as disk_picture
from demo.disk import story as disk
from demo.disk.story import Story
from demo.quotas import scenario
from demo.quotas.picture import draw
from demo.quotas.scenario import Client, Phase, Result
from demo.quotas.table import live, mega, summary
from demo.spark import story as spark
from harness.clients.load import KAFKA_WINDOW
from harness.kafka.node import KafkaNode
from harness.system.filesystem import own_file_system

PICTURE: Final = scenario.ROOT / "build/demo/rates.png"
DISK: Final = scenario.ROOT / "build/demo/disk.png"
console = Console()


def main() -> int:
    """All of it; leaves nothing running and no folder behind."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--windows", type=int, default=1, help="quota windows (11 s) to measure a phase over")
    parser.add_argument("--only", choices=("broker", "spark"), help="one part alone")
    given = parser.parse_args()
    parts = (given.only,) if given.only else ("broker", "spark") if _spark_wanted() else ("broker",)
    _check(parts)
    console.print("[bold]quotahost[/]: Python quotas inside a Kafka broker. Ctrl-C ends it at any time.")
    if "spark" not in parts:
        console.print(spark.WITHOUT, style="dim")
    played = {"broker": lambda: _broker(given.windows), "spark": lambda: spark.show(console)}
    good = [played[part]() for part in parts]
    if "spark" not in parts:
        console.print(spark.WITHOUT)
    return 0 if all(good) else 1


def _spark_wanted() -> bool:
    return os.environ.get("SPARK", "").lower() not in ("", "0", "no", "false")


def _broker(windows: int) -> bool:
    scenario.install_example()
    with (
        tempfile.TemporaryDirectory(prefix="quotahost-demo-") as folder,
        own_file_system(Path(folder) / "disk") as mounted,
    ):
        console.print(f"the broker's data is on {'a small file system of its own' if mounted else folder}")
        console.print("a single-node KRaft broker starts with quotahost.jar and one property ...")
        began = time.monotonic()
        with scenario.broker(Path(folder) / "disk/node") as node:
            console.print(
                f"broker at {node.bootstrap}, Python inside, up in {time.monotonic() - began:.1f} s"
            )
            return _report(*_play(node, windows))


def _disk(node: KafkaNode) -> Story:
    title = "Now the disk: limits are set live, 80 and 240 MB above what is used"
    console.print(f"[bold]{title}")
    if not console.is_terminal:
        told: list[str] = []
        return disk.play(node, lambda story, what: _tell(story, what, told))
    with Live(console=console, refresh_per_second=4) as shown:
        return disk.play(node, lambda story, what: shown.update(disk_picture.live(story, what)))


def _tell(story: Story, what: str, told: list[str]) -> None:
    if what not in told:
        told.append(what)
        console.print(what)
    if len(story.samples) % 10 == 0:
        sample = story.samples[-1]
        rates = ", ".join(f"{user} {mega(rate)}" for user, rate in sample.rates.items())
        console.print(
            f"  {sample.consumed / 1e6:,.0f} MB used, factor {sample.factor:.2f} {sample.state}: {rates}"
        )


def _check(parts: Sequence[str]) -> None:
    for program, remedy in {"java": "install a JDK 17 or newer", "mvn": "install Maven"}.items():
        if shutil.which(program) is None:
            sys.exit(f"{program} is not on the PATH: {remedy}")
    if not scenario.JAR.is_file():
        sys.exit(f"{scenario.JAR} is missing: run 'make build'")
    if "spark" in parts and (problem := spark.missing()):
        sys.exit(problem)


def _play(node: KafkaNode, windows: int) -> tuple[list[Result], list[Client], float, Story]:
    found: list[Result] = []
    first, *others = scenario.PHASES
    first.change(node)
    with scenario.clients(node) as everyone:
        found += _phase(first, node, everyone, windows)
        for phase in others:
            phase.change(node)
            found += _phase(phase, node, everyone, windows)
        end = time.monotonic()
    story = _disk(node)
    return found, everyone, end, story


def _phase(phase: Phase, node: KafkaNode, everyone: list[Client], windows: int) -> list[Result]:
    since = scenario.start(phase, node, everyone)
    end = since + KAFKA_WINDOW * (1 + windows)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as shown:
            while (left := end - time.monotonic()) > 0:
                shown.update(live(phase.title, left, node, everyone))
                time.sleep(0.5)
    else:
        console.print(phase.title)
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(5.0, left))
            rates = (f"{c.user} {mega(c.load.meter.rate_over(KAFKA_WINDOW))}" for c in everyone)
            console.print("  " + ", ".join(rates))
    return scenario.results(phase, since, windows, everyone)


def _report(found: list[Result], everyone: list[Client], end: float, story: Story) -> bool:
    draw(everyone, end, PICTURE)
    disk_picture.draw(story, DISK)
    console.print(summary(found))
    missed = [result for result in found if not result.met]
    console.print("A disk never fills:")
    lines = disk_picture.lines(story)
    for line, good in lines:
        console.print(f"  [{'green' if good else 'red'}]{line}")
    console.print(f"the rates over time: {PICTURE}; the disk: {DISK}")
    console.print(
        "[bold green]All rates met their quotas." if not missed else "[bold red]A rate missed its quota."
    )
    return not missed and all(good for _, good in lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("ended; nothing is left running")
        sys.exit(130)
