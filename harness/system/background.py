"""The base of work on a thread of its own beside a test, a bench or the demo."""

import sys
import threading
import traceback
from abc import ABC, abstractmethod
from typing import Final, Self

_LONGEST_STOP: Final = 100.0  # seconds; less than the time after which a test counts as hung


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
        """Ends the thread, and raises the exception that ended it before, if there is one.

        Raises:
            TimeoutError: the thread still runs; the message says where.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_STOP)
        if self._thread.is_alive():
            at = "".join(traceback.format_stack(sys._current_frames().get(self._thread.ident or 0)))
            raise TimeoutError(f"{type(self).__name__} doesn't stop within {_LONGEST_STOP:.0f} s; it is at\n{at}")
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
