"""The three brokers right now as a live table or plain lines, and the acts as a summary."""

from __future__ import annotations

from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.disk.picture import STYLES
from demo.quotas.table import mega
from demo.spark.acts import Act, Show, Tale
from demo.spark.cluster import Scene, Seen
from demo.spark.disk import BROKER

BAR: Final = 20
_EVERY: Final = 10  # looks between two plain lines


def live(scene: Scene, tale: Tale, words: str) -> Group:
    """What is so right now, with what is going on above."""
    look = tale.looks[-1]
    table = Table()
    for column in ("broker", "state", "factor", "", "which source answers", "age of the record", "producer"):
        table.add_column(column)
    for broker, seen in look.brokers.items():
        table.add_row(
            str(broker),
            Text(f"{seen.state:8}", style=STYLES[seen.state]),
            f"{seen.factor:.2f}",
            Text("█" * round(BAR * seen.factor) + "·" * (BAR - round(BAR * seen.factor)), STYLES[seen.state]),
            f"{seen.source:15}",
            _age(seen),
            mega(seen.rate),
        )
    acts = Text(f"{look.at:.0f} s · {disk(scene)}", style="dim")
    return Group(Text(words, style="bold"), table, acts)


def disk(scene: Scene) -> str:
    """How full broker 3's is."""
    told = f"disk of broker {BROKER}: {scene.disk.used() / 1e6:,.0f} MB used"
    if scene.disk.limits is None:
        return told
    soft, hard = (level / 1e6 for level in scene.disk.limits)
    return f"{told}, soft {soft:,.0f} MB, hard {hard:,.0f} MB"


def _age(seen: Seen) -> str:
    return "none yet" if seen.age is None else f"{seen.age:4.1f} s"


class Plain:
    """Lines for a console that is no terminal: each change of words, and a look now and then."""

    def __init__(self, console: Console) -> None:
        """Nothing is told yet."""
        self._console, self._words = console, ""

    def __call__(self, scene: Scene, tale: Tale, words: str) -> None:
        """Tell of the newest look, if it is time."""
        if words != self._words:
            self._words = words
            self._console.print(words, soft_wrap=True)
        elif len(tale.looks) % _EVERY:
            return
        look = tale.looks[-1]
        told = (f"{n} {seen.state} {seen.factor:.2f} {_short(seen)}" for n, seen in look.brokers.items())
        self._console.print(f"  {look.at:3.0f} s  {' | '.join(told)}; {disk(scene)}", soft_wrap=True)


def _short(seen: Seen) -> str:
    return f"by {seen.source or 'none'}, {mega(seen.rate)}"


def shower(console: Console, shown: Live) -> Show:
    """What shows a look on this console."""
    return (
        (lambda scene, tale, words: shown.update(live(scene, tale, words), refresh=True))
        if console.is_terminal
        else Plain(console)
    )


def summary(acts: list[Act]) -> Table:
    """Each act with a tick or a cross."""
    table = Table(title="Spark in the loop", title_justify="left")
    for column in ("", "what should happen", "what did"):
        table.add_column(column)
    for act in acts:
        mark = (
            Text("✓", style="green") if act.good else Text("✗", style="red" if act.good is False else "dim")
        )
        table.add_row(mark, act.title, act.told)
    return table
