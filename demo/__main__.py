"""Runs the demo, which shows on a real broker what quotahost does.

With SPARK=1 in the environment the demo also plays the part with the Spark pipeline. The exit code is 1 if a check
failed, and 130 after Ctrl-C.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from demo import disk, quotas, spark
from harness.java.jdk import JavaError, program
from harness.plugin import JAR, ROOT
from harness.system.filesystem import own_file_system

PICTURE: Final = ROOT / "build/demo/rates.png"
DISK: Final = ROOT / "build/demo/disk.png"
console = Console()


def main() -> int:
    """Plays the chosen parts; leaves no process and no folder behind."""
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
        results, clients, end = quotas.play(Path(folder) / "disk/node", windows, console)
        recording = disk.play(Path(folder) / "disks", console)
    quotas.draw(clients, end, PICTURE)
    disk.draw(recording, DISK)
    console.print(quotas.summary(results))
    console.print("Producers are stopped before a disk is full:")
    lines = disk.findings(recording)
    for line, passed in lines:
        console.print(f"  [{'green' if passed else 'red'}]{line}")
    console.print(f"Pictures: the rates over time in {PICTURE}, the disk in {DISK}", soft_wrap=True)
    all_met = all(result.met for result in results)
    console.print("[bold green]All rates met their quotas." if all_met else "[bold red]A rate missed its quota.")
    return all_met and all(passed for _, passed in lines)


def _check(parts: Sequence[str]) -> None:
    try:
        program("java")
    except JavaError as missing:
        sys.exit(str(missing))
    if shutil.which("mvn") is None:
        sys.exit("mvn is not on the PATH: install Maven")
    if not JAR.is_file():
        sys.exit(f"{JAR} is missing: run 'make build'")
    if "spark" in parts and (problem := spark.missing()):
        sys.exit(problem)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        console.print("The demo has ended; no process is left running.")
        sys.exit(130)
