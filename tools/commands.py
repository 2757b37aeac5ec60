"""Makes docs/reference/commands.md: each command of ``quotahost`` with its arguments and options, as its help has them.

All commands are typer's, except ``explain`` and ``top``, which have parsers of argparse.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import Any, Final

from typer.main import get_command

from quotahost.cli.explain.explain import parser as explain
from quotahost.cli.main import app
from quotahost.cli.top.top import parser as top

_QUICK: Final = {"explain": explain, "top": top}


def reference() -> str:
    """A section for each command, with a table of its options."""
    root: Any = get_command(app)
    return "\n\n".join(part for name, command in _commands(root.commands) for part in _section(name, command))


def _commands(commands: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in sorted(commands.items()):
        if of_group := getattr(command, "commands", None):
            yield from _commands(of_group, f"{name} ")
        else:
            yield group + name, command


def _section(name: str, command: Any) -> Iterator[str]:
    made = _QUICK[name]() if name in _QUICK else None
    yield f"## `quotahost {name}`"
    # Typer's help has a paragraph for each line of a text.
    yield " ".join((made.description or "" if made else command.help).split())
    if rows := list(_of_argparse(made) if made else _of_typer(command)):
        head = ["| argument or option | meaning |", "|---|---|"]
        cells = ((cell.replace("|", "\\|") for cell in row) for row in rows)
        yield "\n".join([*head, *(f"| `{form}` | {meaning} |" for form, meaning in cells)])


def _of_typer(command: Any) -> Iterator[tuple[str, str]]:
    for param in command.params:
        if param.param_type_name == "argument":
            form = param.metavar or param.name.upper()
        else:
            form = ", ".join(param.opts) + ("" if param.is_flag else f" {param.metavar or 'VALUE'}")
        # An option of the pipeline has its default only in its help, because the environment may set it.
        default = param.show_default if isinstance(param.show_default, str) else param.default
        is_told = default not in (None, False, "", ()) and "default:" not in param.help and not callable(default)
        yield form, param.help + (" Required." if param.required else f" Default: `{default}`." if is_told else "")


def _of_argparse(made: ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in made._actions:  # argparse has no public name for them
        if action.dest != "help":
            value = "" if action.nargs == 0 else str(action.metavar or "VALUE")
            form = f"[{value}]" if action.nargs == "?" else value
            help_text = str(action.help)
            yield (
                " ".join([", ".join(action.option_strings), form]).rstrip(),
                f"{help_text[:1].upper()}{help_text[1:]}.",
            )
