"""A file that keeps a small volume's used bytes at a level, whatever Kafka writes and deletes beside it."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Final, Self

_APART: Final = 0.05  # seconds


class Ballast:
    """Keeps the level while a ``with`` block runs, by a look every 50 ms; ``to`` sets another one at once."""

    def __init__(self, file: Path, level: int) -> None:
        """``file`` lies on the volume and is made; ``level`` is in bytes used."""
        self._file: Final = file
        self._level = level
        self._lock: Final = threading.Lock()
        self._stopping: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._keep, daemon=True)

    def to(self, level: float) -> None:
        """Takes the used bytes of the volume to this level; Kafka's own bytes can't be taken away."""
        with self._lock:
            self._level = int(level)
            self._adjust()

    def __enter__(self) -> Self:
        """Begins to keep the level."""
        self._file.touch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the file as it is."""
        self._stopping.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stopping.wait(_APART):
            with self._lock:
                self._adjust()

    def _adjust(self) -> None:
        own = self._file.stat().st_size
        wanted = own + self._level - shutil.disk_usage(self._file).used
        if wanted > own:
            with self._file.open("rb+") as file:
                os.posix_fallocate(file.fileno(), own, wanted - own)
        else:
            os.truncate(self._file, max(0, wanted))
