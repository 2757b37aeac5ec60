"""How changes of quotas are shown: one table of what differs, one of what stays since nobody declared it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quotahost.cli.console import shown
from quotahost.declared.changes import Change
from quotahost.declared.cluster import Refusal
from quotahost.declared.entities import UNITS
from quotahost.units.show import show_limit

_STYLES: Final = {"add": "green", "change": "yellow", "remove": "red"}
_MOST: Final = 20  # rows of what is not managed


def show_changes(screen: Console, changes: Sequence[Change]) -> None:
    """Before and after of each change; nothing if there is none."""
    if not changes:
        return
    grid = _grid("", "for", "quota", "before", "", "after")
    for change in changes:
        grid.add_row(
            Text(change.what, style=_STYLES[change.what]),
            Text(shown(str(change.entity))),
            change.key,
            rate(change.key, change.before),
            "->",
            rate(change.key, change.after),
        )
    screen.print(grid)


def show_not_managed(screen: Console, kept: Sequence[Change]) -> None:
    """What no file names: at most 20 rows of it."""
    if not kept:
        return
    screen.print(Text("\nNot managed (no file names them; they stay, --prune removes them):", style="bold"))
    grid = _grid("for", "quota", "rate")
    for each in kept[:_MOST]:
        grid.add_row(Text(shown(str(each.entity))), each.key, rate(each.key, each.before))
    screen.print(grid)
    if len(kept) > _MOST:
        screen.print(f"... and {len(kept) - _MOST} more: quotahost quotas export shows all")


def show_refusals(screen: Console, refusals: Iterable[Refusal]) -> None:
    """What failed, and why."""
    for each in refusals:
        screen.print(Text.assemble(("failed ", "bold red"), shown(f"{each.entity}: {each.reason}")), soft_wrap=True)


def counted(changes: Sequence[Change]) -> str:
    """``2 to add, 1 to change, 0 to remove``."""
    kinds = [change.what for change in changes]
    return ", ".join(f"{kinds.count(kind)} to {kind}" for kind in _STYLES)


def rate(key: str, value: float | None) -> str:
    """With its unit; ``none`` where there is no quota."""
    if value is None:
        return "none"
    return show_limit(None if math.isinf(value) else value, UNITS.get(key, ""))


def _grid(*columns: str) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    return grid
