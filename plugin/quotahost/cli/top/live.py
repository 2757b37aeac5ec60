"""The live table: looks come on one thread, answers on another, and this one waits for keys and draws.

:class:`Keys` reads single keys of the terminal, :class:`Background` looks and asks, and :func:`watch` puts both and the
:class:`~quotahost.cli.top.screen.Screen` together.
"""

from __future__ import annotations

import os
import re
import select
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final

from rich.live import Live

from quotahost.cli.console import Terminal
from quotahost.cli.top.rows import Choice
from quotahost.cli.top.screen import Answer, Question, Screen
from quotahost.errors import QuotahostError
from quotahost.model.use import Look

_REDRAW: Final = 1.0  # seconds; a terminal that changes its size is drawn anew within it
_Event = Callable[[Screen], None]

_SEQUENCES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", "\x04": "q",
}  # fmt: skip
_KEY: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.)|.", re.DOTALL)


def decode(text: str) -> list[str]:
    """The keys that these characters stand for: a character, or a name such as ``up``; unknown sequences are none."""
    keys = [_SEQUENCES.get(part, part) for part in _KEY.findall(text)]
    return [key for key in keys if not key.startswith("\x1b") and (len(key) > 1 or key.isprintable())]


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


class Background:
    """Looks every so often until it is closed, and answers questions; each result is an event for the screen."""

    def __init__(self, look: Callable[[], Look], interval: float, answer: Callable[[Question], Answer]) -> None:
        """``interval`` in seconds."""
        self._look, self._interval, self._answer = look, interval, answer
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self.wake, self._waker = os.pipe()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quotahost-top-looks", daemon=True)

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()

    def ask(self, question: Question) -> None:
        """Have it answered; the answer comes as an event."""
        threading.Thread(target=self._ask, args=(question,), name="quotahost-top-answer", daemon=True).start()

    def hand_over(self, screen: Screen) -> None:
        """Let the screen know all that has happened since the last call."""
        with suppress(Empty):
            while True:
                self._events.get_nowait()(screen)
                os.read(self.wake, 1)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                look = self._look()
            except Exception as error:  # the thread must outlive it: else the screen would stand still and not say so
                self._put(partial(Screen.fail, problem=_problem(error)[0]))
            else:
                self._put(partial(Screen.show, look=look))
            self._closed.wait(self._interval)

    def _ask(self, question: Question) -> None:
        try:
            answer = self._answer(question)
        except Exception as error:  # else the user would wait for an answer for ever
            answer = Answer(_problem(error))
        self._put(partial(Screen.tell, question=question, answer=answer))

    def _put(self, event: _Event) -> None:
        self._events.put(event)
        os.write(self._waker, b"!")


def _problem(error: Exception) -> list[str]:
    """What to show of it; an error that is none of quotahost's is a defect, and tells its type."""
    text = str(error) if isinstance(error, QuotahostError) else f"{type(error).__name__}: {error}"
    return text.splitlines() or [type(error).__name__]


def watch(look: Callable[[], Look], choice: Choice, interval: float, answer: Callable[[Question], Answer]) -> None:
    """Show the live table until the user leaves it.

    Args:
        look: looks once; it may raise a QuotahostError, which is shown until a look succeeds again.
        choice: what is shown first.
        interval: seconds between looks.
        answer: answers a question.
    """
    console, screen = Terminal(), Screen(choice)
    with (
        Keys() as keys,
        Background(look, interval, answer) as background,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while not screen.done and not keys.gone:
            live.update(screen.drawn(console.width, console.height), refresh=True)
            for key in keys.wait(background.wake, _REDRAW):
                question = screen.press(key)
                if question:
                    background.ask(question)
            background.hand_over(screen)
