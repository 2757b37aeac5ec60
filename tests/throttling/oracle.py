"""Runs Kafka's own classes in a JVM, so that tests can compare the models with them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, program

SOURCE: Final = Path(__file__).with_name("ThrottlingOracle.java")


class Oracle:
    """One JVM that reads lines and answers with numbers. A ``with`` block ends it."""

    def __init__(self, directory: Path) -> None:
        """Compiles the oracle into the directory and starts it."""
        classes = directory / "classes"
        libraries = class_path([broker_jars()])
        compile_it = [program("javac"), "--release", "17", "-nowarn", "-cp", libraries, "-d", str(classes)]
        subprocess.run([*compile_it, str(SOURCE)], check=True, stdin=subprocess.DEVNULL, timeout=120)
        path = f"{classes}:{libraries}"
        run_it = [program("java"), "-XX:TieredStopAtLevel=1", "-cp", path, "ThrottlingOracle"]
        self._process = subprocess.Popen(
            run_it, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def replay(self, lines: Iterable[str]) -> list[float]:
        """Returns the answers to a batch. The oracle answers after the last line, so that neither waits for the other.

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
