"""Compiles a small Java program against a broker's jars, so that Kafka's own classes can answer."""

import subprocess
from pathlib import Path

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, program, tool


def compiled(source: Path, directory: Path, *others: Path, package: str = "") -> list[str]:
    """Compiles the source into the directory, with the others that it needs; returns the command that runs it.

    Args:
        source: the file of the main class.
        directory: where classes go.
        others: more files.
        package: that of the main class, if it has one.

    Raises:
        JavaError: there is no JDK.
        ResolveFailed: Maven can't get the broker's jars.
    """
    classes, libraries = directory / "classes", class_path([broker_jars()])
    compile_it = [*tool("javac"), "--release", "17", "-nowarn", "-cp", libraries, "-d", str(classes)]
    subprocess.run([*compile_it, str(source), *map(str, others)], check=True, stdin=subprocess.DEVNULL, timeout=120)
    return [
        program("java"),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{classes}:{libraries}",
        f"{package}.{source.stem}".lstrip("."),
    ]
