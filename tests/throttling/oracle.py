"""Runs Kafka's own classes, and the broker's own tap, in a JVM, so that tests can compare the models with them.

One model is here: yammer's one-minute rate, which quotahost itself has in Java.
"""

import math
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.java.jars import broker_jars
from harness.java.jdk import class_path, program, tool

HERE: Final = Path(__file__).parent


def compiled(main: str, directory: Path, *sources: Path) -> list[str]:
    """Compiles Java files against a broker's jars into the directory; returns the command that runs a class of them.

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


TICK_MS: Final = 5000
ALPHA: Final = 1 - math.exp(-TICK_MS / 1000 / 60.0)


class EwmaMeter:
    """The one-minute rate of yammer's ``Meter`` (metrics-core 2.2.0), which Kafka's BytesInPerSec and others show.

    The design note "Broker side quota (V1)" measures by it. Every 5 s the meter takes the mean of what was marked in
    these 5 s: ``rate += alpha x (mean - rate)``, alpha being ``1 - exp(-5 / 60)``; the first tick sets the rate. A tick
    comes before a mark at the same time.
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._next_ms = start_ms + TICK_MS
        self._uncounted = 0
        self._rate: float | None = None

    def mark(self, n: int, now_ms: int) -> None:
        self._ticks_until(now_ms)
        self._uncounted += n

    def rate(self, now_ms: int) -> float:
        self._ticks_until(now_ms)
        return self._rate or 0.0

    def _ticks_until(self, now_ms: int) -> None:
        while self._next_ms <= now_ms:
            self._next_ms += TICK_MS
            mean, self._uncounted = self._uncounted / (TICK_MS / 1000), 0
            self._rate = mean if self._rate is None else self._rate + ALPHA * (mean - self._rate)
