"""``quotahost top`` is live: it looks at the brokers again and again, draws the rows, and answers keys.

1. :func:`watch`, on the main thread, draws the :class:`Screen`, waits for keys, and gives them to the screen.
2. A key changes the choice of rows, or asks a question about a client or volumes.
3. A second thread (:class:`Background`) looks every ``interval`` and answers questions, because brokers may be slow.
   Each result is an event, which the main thread hands over to the screen.
"""

import os
import re
import select
import signal
import sys
import termios
import textwrap
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Protocol, Self

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.text import Text

from quotahost.base.errors import QuotahostError
from quotahost.cli.console import Terminal, one_line
from quotahost.cli.top.rows import LONGEST, Choice, Order, head, left_out, table
from quotahost.model import ClientUse, Look, QuotaType

HELP: Final = "r s d n sort  t type  h held  / filter  f freeze  \u21b5 client  v volumes  q quit"
_REDRAW: Final = 1.0  # seconds: after a change of the terminal's size the screen is drawn again within this time
_ORDERS: Final = {"r": Order.RATE, "s": Order.SHARE, "d": Order.DELAY, "n": Order.NAME}
_AROUND: Final = 5  # lines that aren't rows: state, cause, choice, the table's head, keys
_KEYBOARD: Final = 0  # the file descriptor of standard input
_END: Final = 10**9  # more steps than any number of rows or lines
_SEQUENCES: Final = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b[5~": "page-up", "\x1b[6~": "page-down",
    "\x1b[H": "home", "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape", "\x04": "q",
}  # fmt: skip
_KEY: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.)|.", re.DOTALL)


class Question(NamedTuple):
    """The user's question: about a client, or about the volume of this name ("" lists all volumes)."""

    client: ClientUse | None = None
    volume: str = ""
    broker: str = ""  # the id of the volume's broker, if there are several brokers


class Panel(NamedTuple):
    """An answer: its lines, and, if it lists volumes, the questions that open them."""

    lines: Sequence[str]
    volumes: Sequence[Question] = ()


class Watched(Protocol):
    """A broker or a cluster. Both methods may raise a QuotahostError, which the screen shows."""

    def look(self) -> Look:
        """Look once."""

    def answer(self, question: Question) -> Panel:
        """Answer a question about a client or about volumes."""


def watch(watched: Watched, look: Look, choice: Choice, interval: float) -> None:
    """Show the live table until the user leaves it, first with this look; ``interval`` is in seconds between looks."""
    terminal, screen = Terminal(), Screen(look, choice)
    # The default actions of these signals would leave the terminal on its second screen, and without an echo.
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    with (
        Background(watched, interval) as background,
        _unbuffered(_KEYBOARD),
        Live(console=terminal, screen=True, auto_refresh=False) as live,
    ):
        while not screen.done:
            live.update(screen.drawn(terminal.width, terminal.height), refresh=True)
            keys = _pressed(_KEYBOARD, background.wake)
            screen.done = keys is None
            for key in keys or ():
                if question := screen.press(key):
                    background.ask(question)
            background.hand_over(screen)


# ---- looks and answers -----------------------------------------------------------------------------------------


class Background:
    """A thread looks every ``interval`` seconds and answers questions. Each result is an event for the screen."""

    def __init__(self, watched: Watched, interval: float) -> None:
        self._watched, self._interval = watched, interval
        self._questions: SimpleQueue[Question] = SimpleQueue()
        self._events: SimpleQueue[Callable[[Screen], None]] = SimpleQueue()
        self.wake, self._waker = os.pipe()
        self._closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, name="quotahost-top", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True

    def ask(self, question: Question) -> None:
        self._questions.put(question)

    def hand_over(self, screen: "Screen") -> None:
        with suppress(Empty):
            while True:
                self._events.get_nowait()(screen)
                os.read(self.wake, 1)

    def _run(self) -> None:
        while not self._closed:
            try:
                event = self._answered(self._questions.get(timeout=self._interval))
            except Empty:
                event = self._looked()
            self._events.put(event)
            os.write(self._waker, b"!")

    def _looked(self) -> "Callable[[Screen], None]":
        try:
            return partial(Screen.show, look=self._watched.look())
        except Exception as error:  # the thread must survive: otherwise the screen would freeze without a message
            return partial(Screen.show, look=None, problem=_problem(error)[0])

    def _answered(self, question: Question) -> "Callable[[Screen], None]":
        try:
            panel = self._watched.answer(question)
        except Exception as error:  # otherwise the user would wait for an answer for ever
            panel = Panel(_problem(error))
        return partial(Screen.tell, question=question, panel=panel)


def _problem(error: Exception) -> list[str]:
    """The lines to show for an error. An error that isn't quotahost's own is a defect, so its type is shown, too."""
    text = str(error) if isinstance(error, QuotahostError) else f"{type(error).__name__}: {error}"
    return text.splitlines()


# ---- keys ------------------------------------------------------------------------------------------------------


def decode(text: str) -> list[str]:
    """The keys of these characters: a character, a name such as ``up``, or an unknown sequence as it is."""
    return [_SEQUENCES.get(part, part) for part in _KEY.findall(text)]


@contextmanager
def _unbuffered(terminal: int) -> Iterator[None]:
    """Within the ``with`` block, keys are read immediately, and the terminal doesn't echo them."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _pressed(terminal: int, other: int) -> list[str] | None:
    """Wait for keys, for data in ``other``, or for _REDRAW; return the pressed keys, or None if the terminal closed."""
    ready, _, _ = select.select([terminal, other], [], [], _REDRAW)
    if terminal not in ready:
        return []
    read = os.read(terminal, 1024)
    return decode(read.decode(errors="replace")) if read else None


# ---- the screen ------------------------------------------------------------------------------------------------


@dataclass
class Screen:
    """The contents of the screen."""

    look: Look  # the latest look
    choice: Choice = field(default_factory=Choice)
    problem: str = ""  # the reason why there is no newer look
    frozen: bool = False  # new looks are not shown until the user ends the freeze
    selected: int = 0  # the selected row, counted from 0
    typing: bool = False  # the user types the filter
    panel: Panel | None = None  # shown instead of the rows: an answer, or the text that top waits for an answer
    question: Question | None = None  # the question that the panel answers
    done: bool = False  # the user wants to leave
    _first: int = 0  # the first line or row on the screen
    _height: int = 24

    def show(self, look: Look | None, problem: str = "") -> None:
        """Take a new look, unless the screen is frozen; ``problem`` tells why there is no look."""
        self.problem = problem
        if look is not None and not self.frozen:
            self.look = look

    def tell(self, question: Question, panel: Panel) -> None:
        if self.question is question:
            self.panel, self._first = panel, 0

    def rows(self) -> list[ClientUse]:
        return self.choice.rows(self.look.uses)

    def press(self, key: str) -> Question | None:
        """Do what the key means; return a question if the key asks one."""
        if self.typing:
            self._type(key)
        elif self.panel:
            return self._in_panel(self.panel, key)
        elif key == "v":
            return self._ask(Question())
        elif key == "enter" and (rows := self.rows()):
            return self._ask(Question(client=rows[min(self.selected, len(rows) - 1)]))
        elif key == "q":
            self.done = True
        elif key in ("f", " "):
            self.frozen = not self.frozen
        elif key == "/":
            self.typing = True
        elif key in _ORDERS:
            self._choose(order=_ORDERS[key])
        elif key == "h":
            self._choose(held=not self.choice.held)
        elif key == "t":
            types = [None, *QuotaType]
            self._choose(type=types[(types.index(self.choice.type) + 1) % len(types)])
        elif key == "escape":
            self._choose(type=None, text="", held=False)
        else:
            self.selected = max(0, min(self.selected + self._step(key), len(self.rows()) - 1))
        return None

    def _type(self, key: str) -> None:
        text = self.choice.text
        self.typing = key not in ("enter", "escape")
        changed = {"escape": "", "backspace": text[:-1]}.get(key, text + key if len(key) == 1 else text)
        self._choose(text=changed)

    def _in_panel(self, panel: Panel, key: str) -> Question | None:
        volumes = dict(zip("123456789", panel.volumes, strict=False))
        if key in volumes:
            return self._ask(volumes[key])
        if key in ("escape", "q", "enter", "backspace"):
            self.panel, self.question, self._first = None, None, 0
        else:
            self._first = max(0, self._first + self._step(key))
        return None

    def _ask(self, question: Question) -> Question:
        self.question, self.panel = question, Panel(["asking the broker ..."])
        return question

    def _choose(self, **changes: Any) -> None:
        self.choice, self.selected, self._first = replace(self.choice, **changes), 0, 0

    def _step(self, key: str) -> int:
        page = max(1, self._height - _AROUND)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -page, "page-down": page, "home": -_END, "end": _END}
        return steps.get(key, 0)

    def drawn(self, width: int, height: int) -> RenderableType:
        """The whole screen, in this many columns and lines at most."""
        self._height = height
        *above, foot = texts = [*head(self.look), self._choice_line(), self._foot()]
        for text in texts:
            text.no_wrap, text.overflow = True, "ellipsis"
        screen, body = Layout(), self._body(width, max(1, height - _AROUND))
        screen.split_column(Layout(Group(*above), size=len(above)), Layout(body), Layout(foot, size=1))
        return screen

    def _body(self, width: int, room: int) -> RenderableType:
        if self.panel:
            # A line that doesn't fit continues below the values of labelled facts.
            fold = partial(textwrap.wrap, width=max(13, width), subsequent_indent=" " * 12, drop_whitespace=False)
            lines = [part for line in self.panel.lines for part in fold(one_line(line)) or [""]]
            self._first = max(0, min(self._first, len(lines) - room))
            return Group(*map(Text, lines[self._first : self._first + room]))
        rows = self.rows()
        self.selected = max(0, min(self.selected, len(rows) - 1))
        # The selected row is always visible.
        self._first = max(min(self._first, self.selected, len(rows) - 1), self.selected - room + 1, 0)
        return table(rows[self._first : self._first + room], width, self.selected - self._first)

    def _choice_line(self) -> Text:
        choice = self.choice
        parts = [f"{len(self.rows()):,} rows by {choice.order}", f"type {choice.type}" if choice.type else ""]
        parts += ["held back" if choice.held else "", "FROZEN" if self.frozen else ""]
        parts.append(left_out(self.look))
        if choice.text or self.typing:
            parts.append(f"filter: {one_line(choice.text, LONGEST)}{'_' if self.typing else ''}")
        line = Text("  ".join(filter(None, parts)), style="bold" if self.frozen or self.typing else "dim")
        return line.append(f"  {one_line(self.problem, LONGEST)}", style="bold red") if self.problem else line

    def _foot(self) -> Text:
        if self.typing:
            return Text("enter keeps the filter  escape clears it", style="dim")
        if self.panel:
            opens = "1-9 open the volume  " if self.panel.volumes else ""
            return Text(f"{opens}escape back  up/down scroll", style="dim")
        return Text(HELP, style="dim")
