"""The base of what runs on a thread of its own beside a test, a bench or the demo."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """Runs ``_run`` on a thread for the time of a ``with`` block; ``_run`` returns once ``_stopping`` is set."""

    def __init__(self) -> None:
        """Prepares the thread; starts nothing yet."""
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    def start(self) -> Self:
        """Starts the thread."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends the thread, and raises the exception that ended it before, if there is one."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def _run(self) -> None:
        """Does the work until ``_stopping`` is set."""

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._failure = error
