"""Reads single keys of a terminal, without waiting for Enter."""

from __future__ import annotations

import os
import re
import select
import termios
import tty
from typing import Any, Final

_SEQUENCES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", "\x04": "q",
}  # fmt: skip
_KEY: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.)|.", re.DOTALL)


def decode(text: str) -> list[str]:
    """The keys that these characters stand for: a character, or a name such as ``up``; unknown sequences are none."""
    found = [_SEQUENCES.get(each, each) for each in _KEY.findall(text)]
    return [key for key in found if not key.startswith("\x1b") and (len(key) > 1 or key.isprintable())]


class Keys:
    """The keys of a terminal; in its ``with`` block they come at once, and are not echoed."""

    def __init__(self, terminal: int = 0) -> None:
        """``terminal`` is a file descriptor."""
        self._terminal = terminal
        self._before: list[Any] = []
        self.gone = False  # the terminal was closed

    def __enter__(self) -> Keys:
        self._before = termios.tcgetattr(self._terminal)
        tty.setcbreak(self._terminal)
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)

    def wait(self, other: int, seconds: float) -> list[str]:
        """The keys that were pressed, as soon as there are any, or ``other`` (a descriptor) can be read, or in time."""
        ready, _, _ = select.select([self._terminal, other], [], [], seconds)
        if self._terminal not in ready:
            return []
        read = os.read(self._terminal, 1024)
        self.gone = not read
        return decode(read.decode(errors="replace"))
