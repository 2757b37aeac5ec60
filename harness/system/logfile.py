"""Reads a log that another process writes.

A position in the log separates what was logged before an action from what was logged after it.
"""

from pathlib import Path
from typing import Final


class LogFile:
    """A growing text file. Positions are in bytes, as ``end()`` returns them."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path

    def end(self) -> int:
        """The position where the next line will be written."""
        return self.path.stat().st_size if self.path.exists() else 0

    def text(self, start: int = 0) -> str:
        """The text that was written after the position ``start``."""
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

    def tail(self, start: int = 0, lines: int = 40) -> str:
        """The last lines of the text that was written after the position ``start``."""
        return "\n".join(self.text(start).splitlines()[-lines:])
