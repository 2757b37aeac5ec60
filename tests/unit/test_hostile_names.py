"""Names that other people choose can't command a terminal or forge a line, in causes, in logs and on screens.

The tests build the drawn values from the types' own fields and put the hostile text into each text field, so a new
field and a new column are tested as soon as they exist.
"""

import dataclasses
import io
import json
import logging
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import product
from typing import Any, Final, get_args, get_origin, get_type_hints

import pytest
from rich.console import Console

from quotahost.base.text import EscapingFormatter
from quotahost.cli import console
from quotahost.cli.console import Finding, Section, Terminal, lines_of
from quotahost.cli.explain import explain, volume
from quotahost.cli.explain.answer import Answer
from quotahost.cli.explain.retention import Cut
from quotahost.cli.top import cluster
from quotahost.cli.top.live import Panel, Question, Screen
from quotahost.cli.top.rows import Choice, merged, values, whole
from quotahost.model import ClientUse, Look, QuotaType, ScopeKind, VolumeUse
from quotahost.model.use import MeasuredVolume

# ---- screens ----

#: A terminal's commands (title, colour, clipboard), by ESC and in C1; reversed text; a beep; half a surrogate pair.
COMMANDS: Final = "\x1b]0;T\x07 \x1b[31m \x1b]52;c;QQ==\x07 \x9b2J \u202egpj.exe \u2066 \u200b \x07 \x00 \ud800"
FORGED: Final = "FORGED"
TEXTS: Final = {
    "commands": COMMANDS,
    "lines": f"a\r\n{FORGED}\n{FORGED}\u2028{FORGED}\x85{FORGED}\x0b{FORGED}",
    "group": f"<group {COMMANDS}\n{FORGED}>",
    "newcomers": f"<newcomers {COMMANDS}\n{FORGED}>",
    "markup": f"[red]x[/red] [link=file:///etc]y[/link] :bomb: {COMMANDS}",
    "long": "x\n" * 26_000,
}
NUMBERS: Final = (0.0, 0.5, 2e6)


def filled(kind: Any, text: str, flag: bool, number: float, member: int) -> Any:
    """A value of this type in which every text is ``text``."""
    fill = partial(filled, text=text, flag=flag, number=number, member=member)
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is str or kind is Any:
        return text
    if kind is bool:
        return flag
    if kind in (int, float):
        return kind(number)
    if origin is typing.Literal:
        return arguments[member % len(arguments)]
    if origin in (typing.Union, types.UnionType):
        return fill(next(argument for argument in arguments if argument is not type(None)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[member % len(kind)]
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
        try:
            return kind(**{name: fill(hints[name]) for name in names})
        except ValueError:  # the number is too large for this type
            return kind(**{name: fill(hints[name], number=0.0) for name in names})
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(map(fill, arguments))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Numbers({fill(arguments[0]): fill(arguments[1])}, fill(arguments[1]))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return (fill(arguments[0]),)
    if origin in (set, frozenset):
        return origin((fill(arguments[0]),))
    raise TypeError(f"filled() has no hostile value of the type {kind}")


class Numbers(dict[Any, Any]):
    """A mapping that has a value for every key."""

    def __init__(self, known: Mapping[Any, Any], rest: Any) -> None:
        super().__init__(known)
        self._rest = rest

    def __missing__(self, key: object) -> Any:
        return self._rest

    def __contains__(self, key: object) -> bool:
        return True


Value = Callable[[Any], Any]


def draw_explain(value: Value, screen: Console) -> None:
    answer, name = value(Answer), value(str)
    # The would-be quotas of suppliers in shadow are JSON in a text.
    shadow = json.dumps({kind: [len(ScopeKind) + 5, 1.0, name, name] for kind in QuotaType})
    quotas = tuple(dataclasses.replace(quota, shadow=shadow) for quota in answer.quotas)
    explain.show(dataclasses.replace(answer, quotas=quotas), None, screen)


def draw_volume(value: Value, screen: Console) -> None:
    volume.show_volume(screen, look_of(value), value(MeasuredVolume))
    screen.print(console.table(volume.VOLUMES, [volume.volume_row(value(VolumeUse))]))
    screen.print(console.table("abcd", [volume.cut_row(dataclasses.replace(value(Cut), freed=(1, 2)))]))


def look_of(value: Value) -> Look:
    # The readers of dumps and records let only three words through, so a screen never gets hostile text here.
    look: Look = value(Look)
    return dataclasses.replace(look, fence="closed")


def draw_look(value: Value, screen: Console) -> None:
    look, name = look_of(value), value(str)
    screen.print(whole(look, Choice(), screen))
    screen.print(whole(merged({name: look, "2": look}, {name, f"{name}3"}), Choice(), screen))


def draw_panels(value: Value, screen: Console) -> None:
    look, name, use = look_of(value), value(str), value(ClientUse)
    panels = [
        cluster.listed({name: look, "2": dataclasses.replace(look, volumes=())}).lines,
        cluster.opened(look, value(MeasuredVolume)),
        cluster._told(use, {name: (name,), "1": (json.dumps({"state": name}),)}, [name]),
    ]
    for lines in panels:
        shown = Screen(look=look)
        shown.panel = Panel(lines)
        screen.print(shown.drawn(120, 400))


def draw_screen(value: Value, screen: Console) -> None:
    shown = Screen(choice=value(Choice), look=look_of(value), problem=value(str))
    screen.print(shown.drawn(120, 40))
    shown.question = Question(value(ClientUse), value(str), value(str))
    screen.print(shown.drawn(120, 40))


def draw_findings(value: Value, screen: Console) -> None:
    console.show([Section("Settings", [value(Finding)], ("property",), [[value(str)]])], screen)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("draw", [draw_explain, draw_volume, draw_look, draw_panels, draw_screen, draw_findings])
def test_nothing_commands_a_terminal_or_forges_a_line(draw: Callable[[Value, Console], None], text: str) -> None:
    for flag, number, member in product((True, False), NUMBERS, range(6)):
        stream = io.StringIO()
        screen = Terminal(file=stream, width=120, height=400, force_terminal=True, color_system=None)
        draw(partial(filled, text=text, flag=flag, number=number, member=member), screen)
        out = "\n".join(map(str.rstrip, stream.getvalue().split("\n")))  # a screen's lines are padded with blanks
        strange = {char for char in out if not char.isprintable() and char != "\n"}
        assert not strange, f"unprintable {strange} in {out[:2000]!r}"
        assert not [line for line in out.splitlines() if line.lstrip().startswith(FORGED)], out
        if draw is not draw_findings:  # text of the operator's own files is shown in full
            assert len(out) < 50_000, "a very long name is cut"


@pytest.mark.proves("faults.names")
def test_whoever_forgets_to_escape_a_text_is_helped_and_json_is_plain() -> None:
    look = look_of(partial(filled, text=COMMANDS, flag=True, number=0.5, member=0))
    assert json.dumps(values(merged({COMMANDS: look}, {COMMANDS}), Choice())).isprintable()
    lines = lines_of(lambda screen: [screen.print(COMMANDS), screen.print(console.table(["a"], [[COMMANDS]]))])
    assert all(char.isprintable() for line in lines for char in line)


# ---- logs; test_factor tests that the host escapes the names of sources and volumes in a cause ----


@pytest.mark.proves("faults.names")
def test_in_any_line_of_a_log_that_forgot_to_escape_it() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(EscapingFormatter("%(levelname)s %(message)s"))
    name = COMMANDS + TEXTS["lines"]
    try:
        raise ValueError(name)
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "it is %s", (name,), (ValueError, error, None))
        handler.emit(record)
    assert all(char.isprintable() or char in "\n\t" for char in stream.getvalue())
    assert all(line.startswith("  ") for line in stream.getvalue().splitlines()[1:]), "no line can pass as a log record"
