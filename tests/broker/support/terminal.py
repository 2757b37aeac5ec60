"""Runs a command of quotahost's in a terminal, types keys, and waits for what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from typing import Final

from harness.system.waiting import eventually

_COMMAND: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A command in a pseudo terminal, for the time of a ``with`` block."""

    def __init__(self, *arguments: object, lines: int = 24, columns: int = 100) -> None:
        """Start ``quotahost`` with these arguments."""
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._seen = ""
        # A worker of pytest-xdist has these two, and they would be taken for the terminal's size.
        inherited = {name: text for name, text in os.environ.items() if name not in ("LINES", "COLUMNS")}
        self._program = subprocess.Popen(
            [sys.executable, "-m", "quotahost.cli", *map(str, arguments)],
            stdin=self._theirs, stdout=self._theirs, stderr=self._theirs, env=inherited | {"TERM": "xterm"},
        )  # fmt: skip

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def press(self, keys: bytes) -> None:
        """Type these keys; what was seen before is forgotten."""
        self._seen = ""
        os.write(self._ours, keys)

    def shows(self, text: str) -> None:
        """Wait until it has shown this text since the last keys."""
        eventually(lambda: text in self._read(), on_timeout=lambda: self._seen[-2000:])

    def line(self, pattern: str) -> str:
        """Wait for a line since the last keys in which the pattern is found; without what commands the terminal."""
        eventually(lambda: self._line(pattern) is not None, on_timeout=lambda: self._seen[-2000:])
        return self._line(pattern) or ""

    def _line(self, pattern: str) -> str | None:
        whole, _, _ = _COMMAND.sub("", self._read()).rpartition("\n")
        return next((line for line in whole.splitlines() if re.search(pattern, line)), None)

    def ends(self) -> int:
        """Wait for its end; the exit code."""
        eventually(lambda: (self._read(), self._program.poll() is not None)[1])
        return self._program.returncode

    def _read(self) -> str:
        if select.select([self._ours], [], [], 0.2)[0]:
            self._seen += os.read(self._ours, 65536).decode(errors="replace")
        return self._seen
