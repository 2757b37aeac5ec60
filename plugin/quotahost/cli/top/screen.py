"""The live table's state, and what each key does to it. It knows neither the terminal nor the broker."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from quotahost.cli.console import one_line
from quotahost.cli.top.rows import Choice, Order
from quotahost.cli.top.table import LONGEST, cause_line, left_out, state_line, table
from quotahost.model import QuotaType
from quotahost.model.use import ClientUse, Look

HELP: Final = "r s d n sort  t type  h held  / filter  f freeze  \u21b5 client  v volumes  q quit"
_ORDERS: Final = {"r": Order.RATE, "s": Order.SHARE, "d": Order.DELAY, "n": Order.NAME}
_AROUND: Final = 5  # lines that are no rows: state, cause, choice, the table's head, keys


@dataclass(frozen=True, slots=True)
class Question:
    """What the user wants to have explained: a client, or the volume of this name ("" lists all).

    ``broker`` is the id of the volume's broker where there are several brokers.
    """

    client: ClientUse | None = None
    volume: str = ""
    broker: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The lines of an answer, and what opens the volumes that it lists, if it does."""

    lines: Sequence[str]
    volumes: Sequence[Question] = ()


@dataclass
class Screen:
    """What is shown now.

    Attributes:
        choice: which rows, in what order.
        look: the newest look, None before the first.
        problem: why there is no newer look; "" if there is nothing wrong.
        frozen: new looks are not shown until the user lets go.
        selected: the row that is selected, counted from 0.
        typing: the user types the filter.
        panel: the answer that is shown instead of the rows; None if these are.
        question: what was asked last and is not answered yet.
        done: the user wants to leave.
    """

    choice: Choice = field(default_factory=Choice)
    look: Look | None = None
    problem: str = ""
    frozen: bool = False
    selected: int = 0
    typing: bool = False
    panel: Answer | None = None
    question: Question | None = None
    done: bool = False
    _first: int = 0  # the first line or row that is shown
    _height: int = 24

    # ---- what comes in ----------------------------------------------------------------------------------------

    def show(self, look: Look) -> None:
        """Take a new look, unless the screen is frozen."""
        self.problem = ""
        if not self.frozen:
            self.look = look

    def fail(self, problem: str) -> None:
        """There is no newer look."""
        self.problem = problem

    def tell(self, question: Question, answer: Answer) -> None:
        """Show the answer, unless the user has gone on without it."""
        if self.question is question:
            self.question, self.panel, self._first = None, answer, 0

    def rows(self) -> list[ClientUse]:
        """The rows by the user's choice."""
        return self.choice.rows(self.look.uses) if self.look else []

    # ---- keys -------------------------------------------------------------------------------------------------

    def press(self, key: str) -> Question | None:
        """Do what the key means; what has to be asked for it, if anything."""
        if self.typing:
            self._type(key)
        elif self.panel is not None or self.question:
            return self._in_panel(key)
        elif key in _ORDERS:
            self._choose(replace(self.choice, order=_ORDERS[key]))
        elif key in ("enter", "v"):
            return self._open(key)
        else:
            self._other(key)
        return None

    def _type(self, key: str) -> None:
        text = self.choice.text
        if key in ("enter", "escape"):
            self.typing = False
            text = "" if key == "escape" else text
        elif key == "backspace":
            text = text[:-1]
        elif len(key) == 1:
            text += key
        self._choose(replace(self.choice, text=text))

    def _in_panel(self, key: str) -> Question | None:
        if key in ("escape", "q", "enter", "backspace"):
            self.panel = self.question = None
            self._first = 0
        elif self.panel and key in map(str, range(1, min(9, len(self.panel.volumes)) + 1)):
            return self._ask(self.panel.volumes[int(key) - 1])
        else:
            self._first = max(0, self._first + self._step(key))
        return None

    def _open(self, key: str) -> Question | None:
        rows = self.rows()
        if key == "v":
            return self._ask(Question())
        return self._ask(Question(client=rows[min(self.selected, len(rows) - 1)])) if rows else None

    def _ask(self, question: Question) -> Question:
        self.question, self.panel = question, None
        return question

    def _other(self, key: str) -> None:
        if key == "q":
            self.done = True
        elif key in ("f", " "):
            self.frozen = not self.frozen
        elif key == "/":
            self.typing = True
        elif key == "escape":
            self._choose(Choice(self.choice.order))
        elif key == "h":
            self._choose(replace(self.choice, held=not self.choice.held))
        elif key == "t":
            types = [None, *QuotaType]
            self._choose(replace(self.choice, type=types[(types.index(self.choice.type) + 1) % len(types)]))
        else:
            last = len(self.rows()) - 1
            self.selected = max(0, min(self.selected + self._step(key), last))

    def _choose(self, choice: Choice) -> None:
        self.choice, self.selected, self._first = choice, 0, 0

    def _step(self, key: str) -> int:
        page = max(1, self._height - _AROUND)
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -page, "page-down": page}
        return steps.get(key, {"home": -(10**9), "end": 10**9}.get(key, 0))

    # ---- what is drawn ----------------------------------------------------------------------------------------

    def drawn(self, width: int, height: int) -> RenderableType:
        """The whole screen, of exactly this many columns and lines at most."""
        self._height = height
        head = [state_line(self.look), cause_line(self.look)] if self.look else [Text("looking ..."), Text()]
        body, lines = self._body(width, max(1, height - _AROUND))
        blank = [Text()] * (height - _AROUND + 1 - lines)
        parts: list[RenderableType] = [*head, self._choice_line(), body, *blank, self._foot()]
        for part in parts:
            if isinstance(part, Text):
                part.no_wrap, part.overflow = True, "ellipsis"
        return Group(*parts)

    def _body(self, width: int, room: int) -> tuple[RenderableType, int]:
        if self.question:
            return Text("asking the broker ...", style="dim"), 1
        if self.panel is not None:
            lines = [part for line in self.panel.lines for part in _folded(one_line(line), width)]
            self._first = max(0, min(self._first, len(lines) - room))
            shown = [Text(line) for line in lines[self._first : self._first + room]]
            return Group(*shown), len(shown)
        rows = self.rows()
        self.selected = max(0, min(self.selected, len(rows) - 1))
        # The selected row is always in sight.
        self._first = max(min(self._first, self.selected, len(rows) - 1), self.selected - room + 1, 0)
        part = rows[self._first : self._first + room]
        return table(part, width, self.selected - self._first), len(part) + 1

    def _choice_line(self) -> Text:
        choice = self.choice
        parts = [f"{len(self.rows()):,} rows by {choice.order}", f"type {choice.type}" if choice.type else ""]
        parts += ["held back" if choice.held else "", "FROZEN" if self.frozen else ""]
        parts.append(left_out(self.look) if self.look else "")
        if choice.text or self.typing:
            parts.append(f"filter: {one_line(choice.text, LONGEST)}{'_' if self.typing else ''}")
        line = Text("  ".join(filter(None, parts)), style="bold" if self.frozen or self.typing else "dim")
        return line.append(f"  {one_line(self.problem, LONGEST)}", style="bold red") if self.problem else line

    def _foot(self) -> Text:
        if self.typing:
            return Text("enter keeps the filter  escape clears it", style="dim")
        if self.panel is not None or self.question:
            opens = "1-9 open the volume  " if self.panel and self.panel.volumes else ""
            return Text(f"{opens}escape back  up/down scroll", style="dim")
        return Text(HELP, style="dim")


def _folded(line: str, width: int) -> list[str]:
    """The line in parts that fit; what follows stands below the values of labelled facts."""
    return textwrap.wrap(line, width, subsequent_indent=" " * 12, drop_whitespace=False) or [""]
