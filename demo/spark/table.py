"""Shows the Spark part: a live table or plain lines while it plays, and a summary of the acts at the end."""

from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.disk.picture import STYLES
from demo.quotas.table import mega
from demo.spark.acts import Act, Recording, Show
from demo.spark.cluster import BrokerSample, Setup
from demo.spark.disk import BROKER

BAR: Final = 20
_EVERY: Final = 10  # samples between two plain lines


def live(setup: Setup, recording: Recording, caption: str) -> Group:
    """The newest sample as a table under the caption."""
    sample = recording.samples[-1]
    table = Table()
    for column in ("broker", "state", "factor", "", "which source answers", "age of the record", "producer"):
        table.add_column(column)
    for broker, broker_sample in sample.brokers.items():
        table.add_row(
            str(broker),
            Text(f"{broker_sample.state:8}", style=STYLES[broker_sample.state]),
            f"{broker_sample.factor:.2f}",
            Text(
                "█" * round(BAR * broker_sample.factor) + "·" * (BAR - round(BAR * broker_sample.factor)),
                STYLES[broker_sample.state],
            ),
            f"{broker_sample.source:15}",
            _age(broker_sample),
            mega(broker_sample.rate),
        )
    acts = Text(f"{sample.at:.0f} s · {disk(setup)}", style="dim")
    return Group(Text(caption, style="bold"), table, acts)


def disk(setup: Setup) -> str:
    """A sentence about how full the disk of broker 3 is."""
    outcome = f"disk of broker {BROKER}: {setup.disk.used() / 1e6:,.0f} MB used"
    if setup.disk.limits is None:
        return outcome
    soft, hard = (level / 1e6 for level in setup.disk.limits)
    return f"{outcome}, soft {soft:,.0f} MB, hard {hard:,.0f} MB"


def _age(broker_sample: BrokerSample) -> str:
    return "none yet" if broker_sample.age is None else f"{broker_sample.age:4.1f} s"


class PlainOutput:
    """Prints lines on a console that is no terminal: each new caption, and a sample now and then."""

    def __init__(self, console: Console) -> None:
        self._console, self._caption = console, ""

    def __call__(self, setup: Setup, recording: Recording, caption: str) -> None:
        """Print the newest sample, if the caption is new or enough samples have passed."""
        if caption != self._caption:
            self._caption = caption
            self._console.print(caption, soft_wrap=True)
        elif len(recording.samples) % _EVERY:
            return
        sample = recording.samples[-1]
        outcome = (
            f"{n} {broker_sample.state} {broker_sample.factor:.2f} {_source_and_rate(broker_sample)}"
            for n, broker_sample in sample.brokers.items()
        )
        self._console.print(f"  {sample.at:3.0f} s  {' | '.join(outcome)}; {disk(setup)}", soft_wrap=True)


def _source_and_rate(broker_sample: BrokerSample) -> str:
    return f"by {broker_sample.source or 'none'}, {mega(broker_sample.rate)}"


def output_for(console: Console, shown: Live) -> Show:
    """The function that shows a sample on this console."""
    return (
        (lambda setup, recording, caption: shown.update(live(setup, recording, caption), refresh=True))
        if console.is_terminal
        else PlainOutput(console)
    )


def summary(acts: list[Act]) -> Table:
    """A table of all acts, each with a tick or a cross."""
    table = Table(title="With the Spark pipeline", title_justify="left")
    for column in ("", "what should happen", "what happened"):
        table.add_column(column)
    for act in acts:
        mark = Text("✓", style="green") if act.passed else Text("✗", style="red" if act.passed is False else "dim")
        table.add_row(mark, act.title, act.outcome)
    return table
