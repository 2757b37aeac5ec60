"""One thread that calls a plugin, as the host thread does, and a time within which it must answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar

from quotahost.errors import QuotahostError

T = TypeVar("T")


def broken(number: int, sentence: str) -> AssertionError:
    """The failure that names the number of the contract."""
    return AssertionError(f"{sentence} (contract {number} of quotahost.api)")


class Caller:
    """Runs functions on one thread of its own, one after the other."""

    def __init__(self, name: str) -> None:
        """``name`` is the thread's. It is a daemon: a plugin that hangs must not hang the test run."""
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def call(self, function: Callable[[], T], within: float) -> T:
        """The function's answer.

        Raises:
            Hangs: it didn't answer within so many seconds.
            BaseException: whatever it raised.
        """
        answer: Future[T] = Future()
        self._work.put((function, answer))
        try:
            return answer.result(within)
        except TimeoutError:
            if answer.done():
                raise
            raise Hangs from None

    def end(self) -> None:
        """Let the thread end after what it does now."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            function, answer = work
            try:
                answer.set_result(function())
            except BaseException as error:  # SystemExit, too, is a plugin's failure
                answer.set_exception(error)


class Hangs(QuotahostError):
    """The plugin didn't answer in time."""


def blame(what: str, error: BaseException, within: float, hanging: int = 3, raising: int = 5) -> NoReturn:
    """Turn what a call ended in into the sentence that names the contract."""
    if isinstance(error, AssertionError) and "of quotahost.api)" in str(error):
        raise error
    if isinstance(error, Hangs):
        raise broken(hanging, f"{what} did not return within {within:g} s") from None
    raise broken(raising, f"{what} raised {type(error).__name__}: {error}") from error
