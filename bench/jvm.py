"""Benches of Java programs that need no broker: they run in a JVM of their own, with the jar and Kafka's classes.

``callback`` and ``affected`` are JMH benchmarks of the calls that Kafka makes on each request, beside Strimzi's plugin
and Kafka's own callback. ``newclients`` measures how soon new clients have their own quota, and ``sweep`` how long
requests stall while a factor goes from 1 to 0.1 and back with many scopes. This module compiles and runs the programs
in ``java/``, and makes Markdown tables of their output.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.markdown import table
from harness.java.jars import BUILD, broker_jars, maven_jar
from harness.java.jdk import program
from harness.plugin import JAR

SOURCES: Final = Path(__file__).parent / "java"
STRIMZI_PLUGIN: Final = "io.strimzi:kafka-quotas-plugin:0.3.1"
JMH: Final = "org.openjdk.jmh:jmh-generator-annprocess:1.37"
NEW_CLIENTS: Final = 20_000
SCOPES: Final = 50_000
SWEEP: Final = {
    "first-longest": "longest on the first way, ms",
    "longest": "longest on the second, ms",
    "p9999": "99.99 %, ms",
    "walk": "a walk, ms of a processor",
    "changes": "changes of limits",
    "table-bytes-a-client": "heap a client, bytes",
}


def class_path() -> str:
    """Compiles the Java programs; returns the class path that runs them."""
    classes = BUILD / "bench/classes"
    classes.mkdir(parents=True, exist_ok=True)
    libraries = [f"{folder}/*" for folder in (broker_jars(), maven_jar(JMH))]
    path = ":".join([str(classes), str(JAR), *libraries, *strimzi_jars()])
    sources = [str(source) for source in SOURCES.rglob("*.java")]
    subprocess.run([program("javac"), "-nowarn", "-d", str(classes), "-cp", path, *sources], check=True)
    return path


def strimzi_jars() -> list[str]:
    """Returns the jars of Strimzi's plugin, and those of its libraries that a broker does not have."""
    jars = sorted(maven_jar(STRIMZI_PLUGIN).glob("*.jar"))
    return [str(jar) for jar in jars if not jar.name.startswith(("kafka-clients", "slf4j", "log4j"))]


def callback() -> str:
    """Returns the times of the calls of a request by callback, with a ratio for each peer."""
    rows = _jmh("CallbackBenchmark", "implementation")
    own = {call: ns for call, implementation, ns, _ in rows if implementation == "quotahost"}
    lines = [
        [call, name, f"{ns:.1f}", f"{allocated:.1f}", "" if name == "quotahost" else f"{own[call] / ns:.2f}"]
        for call, name, ns, allocated in rows
    ]
    return table(["per request", "callback", "ns", "B", "quotahost / peer"], lines)


def affected() -> str:
    """Returns what a factor for writers to affected topics costs a request, by kind of client."""
    rows = _jmh("AffectedBenchmark", "clients")
    lines = [[call, clients, f"{ns:.1f}", f"{allocated:.1f}"] for call, clients, ns, allocated in rows]
    return table(["per request", "clients", "ns", "B"], lines)


def _jmh(benchmark: str, parameter: str) -> list[tuple[str, str, float, float]]:
    """Runs a benchmark class; returns the call, its parameter, and ns and allocated bytes of an operation."""
    result = BUILD / "bench/jmh.json"
    options = ["-prof", "gc", "-rf", "json", "-rff", str(result)]
    subprocess.run([program("java"), "-cp", class_path(), "org.openjdk.jmh.Main", benchmark, *options], check=True)
    return [
        (
            score["benchmark"].rpartition(".")[2],
            score["params"][parameter],
            score["primaryMetric"]["score"],
            score["secondaryMetrics"]["gc.alloc.rate.norm"]["score"],
        )
        for score in json.loads(result.read_text())
    ]


def newclients(*properties: str) -> dict[str, float]:
    """Returns milliseconds by name: the host's start, bursts of new clients, and percentiles of single new clients.

    ``properties`` are further properties, ``name=value``.
    """
    settings = ["static.produce=1M", "clients.max=1000000", *properties]
    lines = _run("NewClients", sys.executable, str(NEW_CLIENTS), *settings)
    figures = (line.split() for line in lines if line.endswith(" ms"))
    return {name: float(value) for name, value, _ in figures}


def newclients_table() -> str:
    """Returns the figures of ``newclients`` as a table."""
    return table(["what", "ms"], [[name, f"{value:.2f}"] for name, value in newclients().items()])


def sweep() -> str:
    """Returns the longest stall of a request, the 99.99th percentile and a walk's time, for quotahost and for Kafka."""
    rows = []
    for name in ("quotahost", "kafka"):
        (line,) = _run("org.quotahost.FactorSweep", name, str(SCOPES), heap="4g")
        words = line.split()
        figures = dict(zip(words[2::2], words[3::2], strict=True))
        rows.append([name, *(figures[key] for key in SWEEP)])
    return table([f"{SCOPES:,} clients", *SWEEP.values()], rows)


def _run(main: str, *arguments: str, heap: str = "1g") -> list[str]:
    """Returns the lines that a program prints."""
    command = [program("java"), f"-Xmx{heap}", "-cp", class_path(), main, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
