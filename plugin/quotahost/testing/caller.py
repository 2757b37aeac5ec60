"""One thread that calls a plugin, as the host thread does, and a time within which the plugin must answer.

Private. Whatever goes wrong in a call ends in :class:`ContractBroken`, the failure that a plugin's author sees.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

_T = TypeVar("_T")


class ContractBroken(AssertionError):
    """The plugin breaks a sentence of the contract, which the message names by its number."""

    def __init__(self, number: int, sentence: str) -> None:
        super().__init__(f"{sentence} (contract {number} of quotahost.api)")


class Caller:
    """Runs functions on one thread of its own, one after the other."""

    def __init__(self, name: str) -> None:
        """Start the thread. It is a daemon, so that a plugin that hangs does not hang the test run."""
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(
        self,
        what: str,
        function: Callable[[], _T],
        within: float,
        *,
        hanging: int = 3,
        raising: int = 5,
        passing: tuple[type[BaseException], ...] = (),
    ) -> _T:
        """Run the function ``within`` so many seconds, and return its answer.

        Raises:
            ContractBroken: number ``hanging`` if it took longer, ``raising`` if it raised anything but ``passing``;
                ``what`` names the call.
        """
        answer: Future[_T] = Future()
        self._work.put((function, answer))
        # Not result(within): a TimeoutError that the plugin raises would look like ours.
        if not wait([answer], within).done:
            raise ContractBroken(hanging, f"{what} did not return within {within:g} s")
        error = answer.exception()
        if error is None or isinstance(error, (ContractBroken, *passing)):
            return answer.result()
        raise ContractBroken(raising, f"{what} raised {type(error).__name__}: {error}") from error

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
