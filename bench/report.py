"""Measures the time and memory of ``quotahost report`` as the history grows: 1,000 brokers, a reading every 5 s."""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from bench.markdown import machine_line, table

BROKERS: Final = 1_000
VOLUMES: Final = 2  # of each broker
PERIOD: Final = 5  # seconds: snapshots.period
HOURS: Final = (1, 6, 24)
START: Final = "2026-11-01 00:00:00"

# Each volume fills at a rate of its own, and retention empties it again and again; some volumes don't change.
_READINGS: Final = """
SELECT 'bench' AS cluster, CAST(b AS STRING) AS broker, concat('/dev/nvme', v, 'n1') AS volume, at,
    CAST(4e12 AS BIGINT) AS capacity,
    CAST(4e12 * (0.2 + 0.4 * own + own * own * 0.3 * seconds / {span} + 0.05 * pmod(seconds / (3600 * (1 + own)), 1)
        + 0.002 * sin(seconds / 60)) AS BIGINT) AS consumed,
    CAST(3.2e12 AS BIGINT) AS soft, CAST(3.8e12 AS BIGINT) AS hard,
    '__quotahost_snapshots' AS topic, 0 AS partition, id AS offset, CAST(at AS DATE) AS day
FROM (
    SELECT id, id div {each} AS seconds5, pmod(id, {each}) div {volumes} AS b, pmod(id, {volumes}) AS v,
        pmod(hash(pmod(id, {each})), 1000) / 1000 AS own, seconds5 * {period} AS seconds,
        timestamp_seconds(unix_seconds(TIMESTAMP'{start}') + seconds) AS at
    FROM range(0, {count}, 1, {files})
)
"""


class Cost(NamedTuple):
    """The cost of one report: hours and rows of the history, its MB, seconds, largest MB of the JVM and of Python."""

    hours: int
    rows: int
    stored: float
    seconds: float
    jvm: float
    python: float


def generate(directory: str, hours: int, brokers: int = BROKERS) -> int:
    """Writes a history with Spark, a file for about each 10 minutes; returns the number of its rows."""
    from quotahost.pipeline.spark.session import session

    spark = session("bench", kafka=False)
    each, span = brokers * VOLUMES, hours * 3600
    count = span // PERIOD * each
    text = _READINGS.format(
        span=span, each=each, volumes=VOLUMES, period=PERIOD, start=START, count=count, files=max(2, hours * 6)
    )
    spark.sql(text).write.partitionBy("day").mode("overwrite").parquet(directory)
    return count


def measure(hours: int, folder: Path) -> Cost:
    """Generates so many hours, then draws the worst 20 volumes in a process of its own."""
    history = folder / str(hours)
    made = [sys.executable, "-m", "bench.report", str(history), str(hours)]
    count = int(subprocess.run(made, check=True, capture_output=True, text=True).stdout.split()[-1])
    stored = sum(file.stat().st_size for file in history.rglob("*.parquet"))
    began = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "quotahost.cli",
        "report",
        "--history",
        str(history),
        "--out",
        str(folder / "r.html"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        largest: dict[str, float] = {}
        watcher = threading.Thread(target=_watch, args=(process, largest), daemon=True)
        watcher.start()
        _, errors = process.communicate()
        watcher.join()
    if process.returncode:
        raise RuntimeError(errors)
    seconds = time.monotonic() - began
    return Cost(hours, count, stored / 1e6, seconds, largest.get("java", 0.0), largest.get("python", 0.0))


def _watch(process: subprocess.Popen[str], largest: dict[str, float]) -> None:
    while process.poll() is None:
        for pid in (process.pid, *_children(process.pid)):
            name, size = _peak(pid)
            largest[name] = max(largest.get(name, 0.0), size)
        time.sleep(0.2)


def _children(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, found) for each in (child, *_children(child))]


def _peak(pid: int) -> tuple[str, float]:
    """'java' or 'python', and the largest resident size of the process in MB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return "", 0.0
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    size = float(fields.get("VmHWM", "0 kB").split()[0]) * 1024 / 1e6
    return "java" if fields["Name"] == "java" else "python", size


def main() -> str:
    """A Markdown table with a row for each length of the history."""
    with tempfile.TemporaryDirectory() as folder:
        costs = [measure(hours, Path(folder)) for hours in HOURS]
    rows = [
        [str(c.hours), f"{c.rows:,}", f"{c.stored:,.0f}", f"{c.seconds:.0f}", f"{c.jvm:,.0f}", f"{c.python:,.0f}"]
        for c in costs
    ]
    heads = ["hours", "readings", "Parquet, MB", "seconds", "largest size of Spark's JVM, MB", "of Python, MB"]
    return table(heads, rows) + "\n\n" + machine_line()


if __name__ == "__main__":
    print(generate(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:])))
