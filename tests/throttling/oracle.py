"""Runs Kafka's own classes, or the broker's own tap, in a JVM, so that tests can compare the models with them."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

from harness.plugin import ROOT
from tests.throttling.jvm import compiled

SOURCE: Final = Path(__file__).with_name("ThrottlingOracle.java")
TAP: Final = ROOT / "java-shim/src/main/java/org/quotahost/table/Tap.java"


class Oracle:
    """One JVM that reads lines and answers with numbers. A ``with`` block ends it."""

    def __init__(self, command: list[str]) -> None:
        """Starts the command, which ``kafkas`` and ``taps`` compile."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    @classmethod
    def kafkas(cls, directory: Path) -> Self:
        """Kafka's and yammer's classes; compiles the oracle into the directory."""
        return cls(compiled(SOURCE, directory))

    @classmethod
    def taps(cls, directory: Path) -> Self:
        """The broker's own tap."""
        return cls(compiled(SOURCE.with_name("TapReplay.java"), directory, TAP, package="org.quotahost.table"))

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
