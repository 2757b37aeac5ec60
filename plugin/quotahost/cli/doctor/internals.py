"""Checks that this Kafka has what quotahost uses of it: what the broker's log would say at its start.

``org.quotahost.internals.Internals`` looks, in a JVM with Kafka's jars and quotahost's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.cli.jars import NoJar, carried_jar, jars_in
from quotahost.cli.java import NoJava, java

_TIMEOUT: Final = 60.0  # seconds
_MADE_FOR_IT: Final = "a quotahost that was made for this Kafka"


def check_internals(kafka_home: Path | None) -> Iterator[Finding]:
    """A finding for each thing that the Kafka in this folder has not; none if the folder isn't given."""
    if kafka_home is None:
        return
    libs = kafka_home / "libs"
    try:
        lines = _answers(libs)
    except (NoJar, OSError, NoJava, ValueError, subprocess.TimeoutExpired) as error:
        yield note(f"Nobody has looked for what quotahost uses of Kafka: {str(error).splitlines()[0]}")
        return
    for line in lines:
        level, _, sentence = line.partition("\t")
        text = sentence.partition("; look for")[0]  # the remedy says it
        yield wrong(text, _MADE_FOR_IT) if level == "wrong" else weak(text, _MADE_FOR_IT)
    if not lines:
        yield good("it has all that quotahost uses of it")


def _answers(libs: Path) -> list[str]:
    """The tool's lines, without the last.

    Raises:
        NoJar: there is no jar of quotahost's.
        NoJava: there is no java.
        ValueError: the tool failed; the folder may have no Kafka in it.
        TimeoutExpired, OSError: the JVM can't be run.
    """
    if jars_in(libs):  # the broker's own
        return _run([str(libs / "*")])
    with carried_jar() as jar:
        return _run([str(libs / "*"), str(jar.path)])


def _run(class_path: list[str]) -> list[str]:
    command = [java(), "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(class_path)]
    command += ["org.quotahost.internals.Internals"]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL)
    *lines, end = done.stdout.decode(errors="replace").splitlines() or [""]
    if end != "end":
        raise ValueError((done.stderr.decode(errors="replace").strip().splitlines() or ["java printed nothing"])[-1])
    return lines
