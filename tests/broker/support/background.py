"""Work that goes on behind a test."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """Runs on a thread of its own while it is entered; ``_run`` ends once ``_stop`` is set."""

    def __init__(self) -> None:
        """Not begun."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """The work."""
