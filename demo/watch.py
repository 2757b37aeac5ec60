"""The demo watches the running brokers: it takes a sample twice a second, and prints some of the samples."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from rich.console import Console

POLL: Final = 0.5  # seconds between two samples
EVERY: Final = 10  # one of so many samples is printed
ACT_TIMEOUT: Final = 60.0  # seconds
Sample = TypeVar("Sample")


class Watch(Generic[Sample]):
    """Takes samples, and prints each new caption and every tenth sample.

    Attributes:
        samples: all of them.
    """

    def __init__(self, console: Console, take: Callable[[float], Sample], line: Callable[[Sample], str]) -> None:
        """``take`` gets the seconds since the start and returns a sample; ``line`` formats a sample for printing."""
        self._console, self._take, self._line = console, take, line
        self._began, self._caption = time.monotonic(), ""
        self.samples: list[Sample] = []

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def until(self, caption: str, reached: Callable[[Sample], bool], timeout: float = ACT_TIMEOUT) -> float | None:
        """Watch until ``reached`` accepts a sample; returns the seconds that it took, None after ``timeout``."""
        begin = self.now
        while self.now < begin + timeout:
            self.samples.append(sample := self._take(self.now))
            if caption != self._caption:
                self._caption = caption
                self._console.print(caption, soft_wrap=True)
            if len(self.samples) % EVERY == 0:
                self._console.print(f"  {self._line(sample)}", soft_wrap=True)
            if reached(sample):
                return self.now - begin
            time.sleep(POLL)
        return None

    def during(self, caption: str, seconds: float) -> None:
        """Watch for so many seconds."""
        self.until(caption, lambda _: False, seconds)
