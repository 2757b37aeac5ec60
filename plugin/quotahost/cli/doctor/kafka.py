"""Checks the broker's Kafka by its version: whether quotahost was tried with it, and a fault that is Kafka's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from quotahost.cli.console import Finding, good, note, weak

Version = tuple[int, int, int]
_JAR: Final = re.compile(r"kafka-clients-(\d+)\.(\d+)\.(\d+)[^/]*\.jar")
#: The oldest and the newest release line that quotahost was tried with; the jar has it, too (tools/jar_resources.py).
TRIED: Final = ((4, 0), (4, 4))
# By release line the first version without the fault; it is also in all of 4.0 and 4.1.
_MENDED: Final = {(4, 2): (4, 2, 2), (4, 3): (4, 3, 2)}


def check_kafka(kafka_home: Path | None) -> Iterator[Finding]:
    """Findings about the Kafka that was unpacked to this folder; none if the folder isn't given."""
    if kafka_home is None:
        return
    version = kafka_version(kafka_home / "libs")
    if version is None:
        yield note(f"Kafka's version is not known: no kafka-clients-VERSION.jar in {kafka_home / 'libs'}")
        return
    text = ".".join(map(str, version))
    if not TRIED[0] <= version[:2] <= TRIED[1]:
        yield weak(f"Kafka {text}: quotahost was tried with 4.0 to 4.4 only", "look for a newer quotahost")
    elif has_null_pointer(version):
        yield weak(
            f"Kafka {text} logs a NullPointerException for each change of metadata while a broker that has replicas is "
            "down, with any quota callback (KAFKA-20746)",
            "Kafka 4.2.2, 4.3.2 or newer",
        )
    else:
        yield good(f"Kafka {text}")


def kafka_version(libs: Path) -> Version | None:
    """Kafka's version by the names of its jars; None if none of them is there."""
    for jar in sorted(libs.glob("kafka-clients-*.jar")):
        if found := _JAR.fullmatch(jar.name):
            return int(found[1]), int(found[2]), int(found[3])
    return None


def has_null_pointer(version: Version) -> bool:
    """Whether this version has KAFKA-20746, in MetadataCache.toCluster (in 4.0 it was KRaftMetadataCache's)."""
    line = version[:2]
    return line >= (4, 0) and (line < (4, 2) or version < _MENDED.get(line, (0, 0, 0)))
