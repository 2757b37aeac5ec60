"""Runs the demo, which shows on a real broker what quotahost does.

With SPARK=1 in the environment it also plays the part with the Spark pipeline. The exit code is 1 if something was
not as it should be, and 130 after Ctrl-C.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from demo import disk, quotas, spark
from harness.clients.load import KAFKA_WINDOW
from harness.kafka.node import KafkaNode
from harness.plugin import JAR, ROOT
from harness.system.filesystem import own_file_system

PICTURE: Final = ROOT / "build/demo/rates.png"
DISK: Final = ROOT / "build/demo/disk.png"
console = Console()


def main() -> int:
    """Plays the chosen parts; leaves nothing running and no folder behind."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--windows", type=int, default=1, help="over how many quota windows (of 11 s) to measure each phase"
    )
    parser.add_argument("--only", choices=("broker", "spark"), help="play this part alone")
    args = parser.parse_args()
    parts = (args.only,) if args.only else ("broker", "spark") if _spark_wanted() else ("broker",)
    _check(parts)
    console.print("[bold]quotahost[/]: Python quotas inside a Kafka broker. Ctrl-C ends the demo at any time.")
    if "spark" not in parts:
        console.print(spark.WITHOUT, style="dim")
    parts_by_name = {"broker": lambda: _broker(args.windows), "spark": lambda: spark.show(console)}
    passed = [parts_by_name[part]() for part in parts]
    if "spark" not in parts:
        console.print(spark.WITHOUT)
    return 0 if all(passed) else 1


def _spark_wanted() -> bool:
    return os.environ.get("SPARK", "").lower() not in ("", "0", "no", "false")


def _broker(windows: int) -> bool:
    quotas.install_example()
    with (
        tempfile.TemporaryDirectory(prefix="quotahost-demo-") as folder,
        own_file_system(Path(folder) / "disk") as mounted,
    ):
        console.print(f"the broker's data is on {'a small file system of its own' if mounted else folder}")
        console.print("a Kafka broker starts, with quotahost.jar on its class path and quotahost's properties ...")
        started = time.monotonic()
        with quotas.broker(Path(folder) / "disk/node") as node:
            console.print(
                f"the broker at {node.bootstrap} runs, with Python inside it, after {time.monotonic() - started:.1f} s"
            )
            played = _play(node, windows)
        return _report(*played, _disk(Path(folder) / "disks"))


def _disk(directory: Path) -> disk.Recording:
    console.print("[bold]Now a disk: its soft and hard limits are set live, 80 and 240 MB above what is used")
    console.print("another broker starts, with two log directories, and quota.window.num=2 for even rates ...")
    with disk.broker(directory) as (node, two_volumes), ExitStack() as stack:
        if not two_volumes:
            console.print(
                "no file system can be mounted here: both directories are on one disk, so purple's fills, too"
            )
        if not console.is_terminal:
            printed: list[str] = []
            return disk.play(node, two_volumes, lambda recording, caption: _print_sample(recording, caption, printed))
        view = stack.enter_context(Live(console=console, refresh_per_second=4))
        return disk.play(node, two_volumes, lambda recording, caption: view.update(disk.live(recording, caption)))


def _print_sample(recording: disk.Recording, caption: str, printed: list[str]) -> None:
    if caption not in printed:
        printed.append(caption)
        console.print(caption)
    if len(recording.samples) % 10 == 0:
        sample = recording.samples[-1]
        rates = ", ".join(f"{user} {quotas.mega(rate)}" for user, rate in sample.rates.items())
        console.print(
            f"  {sample.consumed / 1e6:,.0f} MB used, factor {sample.factor:.2f} ({sample.state}), producers: {rates}"
        )


def _check(parts: Sequence[str]) -> None:
    for program, remedy in {"java": "install a JDK 17 or newer", "mvn": "install Maven"}.items():
        if shutil.which(program) is None:
            sys.exit(f"{program} is not on the PATH: {remedy}")
    if not JAR.is_file():
        sys.exit(f"{JAR} is missing: run 'make build'")
    if "spark" in parts and (problem := spark.missing()):
        sys.exit(problem)


def _play(node: KafkaNode, windows: int) -> tuple[list[quotas.Result], list[quotas.Client], float]:
    results: list[quotas.Result] = []
    first, *others = quotas.PHASES
    first.change(node)
    with quotas.clients(node) as all_clients:
        results += _phase(first, node, all_clients, windows)
        for phase in others:
            phase.change(node)
            results += _phase(phase, node, all_clients, windows)
        end = time.monotonic()
    return results, all_clients, end


def _phase(phase: quotas.Phase, node: KafkaNode, all_clients: list[quotas.Client], windows: int) -> list[quotas.Result]:
    since = quotas.start(phase, node, all_clients)
    end = since + KAFKA_WINDOW * (1 + windows)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live_view:
            while (seconds_left := end - time.monotonic()) > 0:
                live_view.update(quotas.live(phase.title, seconds_left, node, all_clients))
                time.sleep(0.5)
    else:
        console.print(phase.title)
        while (seconds_left := end - time.monotonic()) > 0:
            time.sleep(min(5.0, seconds_left))
            rates = (f"{c.user} {quotas.mega(c.load.meter.rate_over(KAFKA_WINDOW))}" for c in all_clients)
            console.print("  " + ", ".join(rates))
    return quotas.results(phase, since, windows, all_clients)


def _report(
    results: list[quotas.Result], all_clients: list[quotas.Client], end: float, recording: disk.Recording
) -> bool:
    quotas.draw(all_clients, end, PICTURE)
    disk.draw(recording, DISK)
    console.print(quotas.summary(results))
    missed = [result for result in results if not result.met]
    console.print("Producers are stopped before a disk is full:")
    lines = disk.findings(recording)
    for line, passed in lines:
        console.print(f"  [{'green' if passed else 'red'}]{line}")
    console.print(f"Pictures: the rates over time in {PICTURE}, the disk in {DISK}")
    console.print("[bold green]All rates met their quotas." if not missed else "[bold red]A rate missed its quota.")
    return not missed and all(passed for _, passed in lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("The demo was ended; nothing is left running.")
        sys.exit(130)
