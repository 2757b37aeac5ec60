"""The demo's part with Spark: three brokers, the pipeline, and a disk that fills.

In the middle the pipeline is killed, and the brokers go on protecting the disk by each other's snapshots. ``cluster``
starts everything, ``acts`` plays it, ``table`` and ``picture`` show it.
"""

import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from demo.spark import acts as spark_acts
from demo.spark import picture as spark_picture
from demo.spark.cluster import running_setup
from demo.spark.table import output_for, summary
from harness.plugin import ROOT
from harness.system.filesystem import own_file_system

PICTURE: Final = ROOT / "build/demo/spark.png"
LOGS: Final = ROOT / "build/demo/spark-logs"
WITHOUT: Final = "The Spark pipeline is not part of this run; to see it at work: SPARK=1 make demo"


def missing() -> str | None:
    """A sentence about what must be installed before this part can be played; None if nothing is missing."""
    if find_spec("pyspark") is None:
        return "pyspark is missing: run 'make build', or pip install 'quotahost[spark]'"
    return None


def show(console: Console) -> bool:
    """Plays all acts and draws the picture; returns whether everything was as it should be."""
    console.print(
        "[bold]Now with Spark[/]: a pipeline reads the snapshots of three brokers and makes one small record of them"
    )
    with (
        tempfile.TemporaryDirectory(prefix="quotahost-demo-") as folder,
        own_file_system(Path(folder) / "node-3", size="1g") as mounted,
    ):
        if not mounted:
            console.print("no small disk can be mounted here: limits below what is used stand for a full disk")
        began = time.monotonic()
        console.print("three brokers start, each with Python inside it ...")
        with running_setup(Path(folder), mounted) as setup:
            console.print(f"they run after {time.monotonic() - began:.1f} s; a producer writes to each of them")
            with Live(console=console, auto_refresh=False) as shown:
                recording = spark_acts.play(setup, output_for(console, shown))
            if not all(act.passed for act in recording.acts):
                _keep_logs(Path(folder), console)
    spark_picture.draw(recording, PICTURE)
    console.print(summary(recording.acts))
    console.print(f"Picture: the factors over time in {PICTURE}")
    return all(act.passed for act in recording.acts)


def _keep_logs(folder: Path, console: Console) -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*/*.log"):
        shutil.copy(log, LOGS / f"{log.parent.name}.log")
    console.print(f"the logs of the brokers and of Spark are in {LOGS}")
