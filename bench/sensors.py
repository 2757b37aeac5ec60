"""Measures with JMH what Kafka's quota manager costs where clients share a sensor, have their own, or none is recorded.

The benchmark itself is java/org/quotahost/SensorBenchmark.java.
"""

from __future__ import annotations

import json
import subprocess

from bench.callback import class_path
from bench.markdown import table
from harness.java.jars import BUILD


def main() -> str:
    """A Markdown table: the ns of a thread for a request, by the sensors of all clients and the number of threads."""
    _, path = class_path()
    result = BUILD / "bench/sensors.json"
    found: dict[tuple[str, str], dict[int, float]] = {}
    for threads in (1, 2, 8):
        options = ["-t", str(threads), "-rf", "json", "-rff", str(result)]
        subprocess.run(["java", "-cp", path, "org.openjdk.jmh.Main", "SensorBenchmark", *options], check=True)
        for each in json.loads(result.read_text()):
            key = (each["benchmark"].rpartition(".")[2], each["params"]["sensors"])
            # Of five seconds the best, in which the machine did least else.
            found.setdefault(key, {})[threads] = min(map(min, each["primaryMetric"]["rawData"]))
    rows = [[*key, *(f"{score:,.0f}" for score in scores.values())] for key, scores in found.items()]
    return table(["request", "sensors", "ns, 1 thread", "2 threads", "8 threads"], rows)
