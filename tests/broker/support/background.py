"""The base of what runs on a thread of its own beside a test."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """Runs ``_run`` on a thread for the time of a ``with`` block; ``_run`` returns once ``_stop`` is set."""

    def __init__(self) -> None:
        """Prepares the thread; starts nothing yet."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Does the work until ``_stop`` is set."""
