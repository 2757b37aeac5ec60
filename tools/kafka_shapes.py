"""Writes kafka-shapes.tsv: what the interfaces of Kafka that the jar implements are in each version, 4.0 to 4.4.

``python -m tools.kafka_shapes`` asks the class ``ShapesTool`` in ``dist/quotahost.jar`` about each version's jars,
which Maven gets. A new Kafka is a new entry of ``VERSIONS``, and ``tests/broker/host/test_shapes.py`` reads it, too.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, program
from harness.plugin import JAR

#: By release line, the version that stands for it.
VERSIONS: Final = {"4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1", "4.4": "4.4.0"}
RESOURCE: Final = (
    Path(__file__).resolve().parents[1] / "java-shim/src/main/resources/META-INF/quotahost/kafka-shapes.tsv"
)
_HEADER: Final = (
    "# Kafka's interfaces by version, as tools/kafka_shapes.py writes them: TYPE, KIND, MEMBER, VERSION...\n"
)


def run_tool(question: str, libs: Path) -> list[str]:
    """The lines of ``ShapesTool`` about the Kafka whose jars are in this folder, without the last one."""
    command = [program("java"), "-XX:TieredStopAtLevel=1", "-cp", class_path([libs, JAR])]
    done = subprocess.run([*command, "org.quotahost.shapes.ShapesTool", question], capture_output=True, check=True)
    *lines, end = done.stdout.decode().splitlines()
    assert end == "end", done.stderr.decode()
    return lines


def table() -> str:
    """The resource's text, made anew of all versions."""
    versions: dict[str, list[str]] = defaultdict(list)
    for line, version in VERSIONS.items():
        for member in run_tool("show", broker_jars(version)):
            versions[member].append(line)
    # What all versions of a type have comes first: the Java half reads the versions from a type's first line.
    ordered = sorted(versions.items(), key=lambda item: (item[0].split("\t")[0], -len(item[1]), item[0]))
    return _HEADER + "".join("\t".join([member, *those]) + "\n" for member, those in ordered)


if __name__ == "__main__":
    RESOURCE.write_text(table())
