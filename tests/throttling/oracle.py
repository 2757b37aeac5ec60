"""Runs Kafka's own classes, and the broker's own tap, in a JVM, so that tests can compare the models with them."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, program, tool

HERE: Final = Path(__file__).parent


def compiled(main: str, directory: Path, *sources: Path) -> list[str]:
    """Compiles Java files against a broker's jars into the directory; returns the command that runs ``main``.

    Raises:
        JavaError: there is no JDK.
        ResolveFailed: Maven can't get the broker's jars.
    """
    classes, libraries = directory / "classes", class_path([broker_jars()])
    compile_it = [*tool("javac"), "--release", "17", "-nowarn", "-cp", libraries, "-d", str(classes)]
    subprocess.run([*compile_it, *map(str, sources)], check=True, stdin=subprocess.DEVNULL, timeout=120)
    return [program("java"), "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{libraries}", main]


class Oracle:
    """One JVM that reads lines and answers with numbers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def replay(self, lines: Iterable[str]) -> list[float]:
        """Returns the answers to a batch. The oracle answers after the last line, so neither process blocks the other.

        Raises:
            AssertionError: the JVM has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("".join(f"{line}\n" for line in [*lines, "."]))
        self._process.stdin.flush()
        answers = []
        while (line := self._process.stdout.readline()) != ".\n":
            assert line, "the oracle's JVM has ended"
            answers.append(float(line))
        return answers
