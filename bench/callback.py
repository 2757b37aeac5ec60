"""Measures with JMH what a callback costs on each request: quotahost's, Strimzi's and Kafka's own.

The benchmarks themselves are CallbackBenchmark and AffectedBenchmark in java/org/quotahost. This module compiles them,
runs them and reads the results. ``newclients`` uses its class path, and the benches of full disks use Strimzi's jars.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

from bench.markdown import table
from harness.java.jars import BUILD, broker_jars, maven_jar
from harness.plugin import JAR

SOURCES: Final = Path(__file__).parent / "java"
STRIMZI_PLUGIN: Final = "io.strimzi:kafka-quotas-plugin:0.3.1"
JMH: Final = "org.openjdk.jmh:jmh-generator-annprocess:1.37"

Row = tuple[str, str, float, float]
"""The call, its peer or parameter, ns for an operation, and bytes that an operation allocates."""


def class_path() -> tuple[Path, str]:
    """Compiles the Java benchmarks; returns their directory, and the class path that runs them."""
    classes = BUILD / "bench/classes"
    classes.mkdir(parents=True, exist_ok=True)
    libraries = [broker_jars(), maven_jar(JMH)]
    parts = [str(classes), str(JAR), *(f"{each}/*" for each in libraries), *strimzi_jars()]
    path = ":".join(parts)
    sources = [str(source) for source in SOURCES.rglob("*.java")]
    subprocess.run(["javac", "-nowarn", "-d", str(classes), "-cp", path, *sources], check=True)
    return classes, path


def strimzi_jars() -> list[str]:
    """The jars of Strimzi's plugin, and of its libraries those that a broker doesn't have."""
    jars = sorted(maven_jar(STRIMZI_PLUGIN).glob("*.jar"))
    return [str(jar) for jar in jars if not jar.name.startswith(("kafka-clients", "slf4j", "log4j"))]


def run(quick: bool = False) -> list[Row]:
    """The calls of a request, by callback."""
    return jmh("CallbackBenchmark", "implementation", quick)


def run_affected(quick: bool = False) -> list[Row]:
    """What a factor for the writers of affected topics costs a request, by who the clients are."""
    return jmh("AffectedBenchmark", "clients", quick)


def jmh(benchmark: str, parameter: str, quick: bool) -> list[Row]:
    """Runs one of the benchmark classes with JMH."""
    _, path = class_path()
    result = BUILD / "bench/jmh.json"
    options = ["-prof", "gc", "-rf", "json", "-rff", str(result)] + (["-f", "1", "-i", "3"] if quick else [])
    subprocess.run(["java", "-cp", path, "org.openjdk.jmh.Main", benchmark, *options], check=True)
    rows = []
    for each in json.loads(result.read_text()):
        name = each["benchmark"].rpartition(".")[2]
        allocated = each["secondaryMetrics"]["gc.alloc.rate.norm"]["score"]
        rows.append((name, each["params"][parameter], each["primaryMetric"]["score"], allocated))
    return rows


def report(rows: list[Row]) -> str:
    """A Markdown table, with a ratio for each peer."""
    lines = []
    own = {name: score for name, implementation, score, _ in rows if implementation == "quotahost"}
    for name, implementation, score, allocated in rows:
        ratio = "" if implementation == "quotahost" else f"{own[name] / score:.2f}"
        lines.append([name, implementation, f"{score:.1f}", f"{allocated:.1f}", ratio])
    return table(["per request", "callback", "ns", "B", "quotahost / peer"], lines)


def report_affected(rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [[name, clients, f"{score:.1f}", f"{allocated:.1f}"] for name, clients, score, allocated in rows]
    return table(["per request", "clients", "ns", "B"], lines)


if __name__ == "__main__":
    print(report(run()))
